// One page for a reviewer. The data (see html.rs) holds every function; only the
// chosen one is made into elements, some hundred rows at a time.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const at = (id) => document.getElementById(id);
const number = (n) => n.toLocaleString('en');
const CHUNK = 300;
// Beyond this many, the smallest cells of the map would be invisible.
const CELLS = 400;

const state = { classes: new Set(data.classes.keys()), name: '', text: '', only: false, chosen: null };
let shown = [];
let matching = null; // for each string: does it contain the searched text?

// ---- The data ----------------------------------------------------------------

// A row is [offset, label, text] or [offset, label, text, site].
const sitesOf = (f) => f.rows.filter((row) => row.length > 3).map((row) => row[3]);
for (const f of data.functions) {
  f.added = data.classes.map(() => 0);
  f.count = data.classes.map(() => 0);
  for (const site of sitesOf(f)) {
    f.added[site.c] += site.a;
    f.count[site.c] += 1;
  }
}
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const overClasses = (numbers) => sum(numbers.filter((_, c) => state.classes.has(c)));

const lineText = (line) => (Array.isArray(line) ? line[1] : line);
const rowMatches = (row) =>
  matching[row[2]] || (row.length > 3 && row[3].l.some((line) => lineText(line) >= 0 && matching[lineText(line)]));

function visible(f) {
  if (state.name && !f.name.toLowerCase().includes(state.name.toLowerCase())) return false;
  if (state.classes.size < data.classes.length && overClasses(f.count) === 0) return false;
  return !matching || f.rows.some(rowMatches);
}

// ---- The state in the address, so that what one sees can be sent ----------------

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const classes = given.has('class') ? given.get('class').split(',') : data.classes;
  state.classes = new Set(data.classes.keys().filter((c) => classes.includes(data.classes[c])));
  state.name = given.get('fn') || '';
  state.text = given.get('q') || '';
  state.only = given.get('only') === '1';
  state.chosen = data.functions.find((f) => f.name === given.get('f')) || null;
  if (['light', 'dark'].includes(given.get('theme'))) document.documentElement.dataset.theme = given.get('theme');
}

function writeAddress() {
  const parts = new URLSearchParams();
  if (state.chosen) parts.set('f', state.chosen.name);
  if (state.classes.size < data.classes.length) parts.set('class', [...state.classes].map((c) => data.classes[c]).join(','));
  if (state.name) parts.set('fn', state.name);
  if (state.text) parts.set('q', state.text);
  if (state.only) parts.set('only', '1');
  history.replaceState(null, '', '#' + parts);
}

// ---- Elements --------------------------------------------------------------------

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function header() {
  document.title = `${data.file}: twin explain`;
  at('file').textContent = data.file;
  at('how').textContent = `What rewriting does to it, scheme ${data.scheme}, site by site`;
  const totals = [
    ['functions', number(data.functions.length)],
    ['instructions', number(data.instructions)],
    ['sites', number(sum(data.functions.map((f) => sum(f.count))))],
    ['added', '+' + number(sum(data.functions.map((f) => sum(f.added))))],
    ['added for each site', (sum(data.functions.map((f) => sum(f.added))) / Math.max(1, sum(data.functions.map((f) => sum(f.count))))).toFixed(1)],
  ];
  at('totals').append(...totals.map(([what, n]) => element('div', {}, element('dt', {}, what), element('dd', {}, n))));
  const counts = data.classes.map((_, c) => sum(data.functions.map((f) => f.count[c])));
  [...counts.keys()].sort((a, b) => counts[b] - counts[a]).forEach((c) => {
    const [name, n] = [data.classes[c], counts[c]];
    const toggle = () => {
      if (!state.classes.delete(c)) state.classes.add(c);
      changed();
    };
    at('classes').append(
      element('button', { type: 'button', class: 'chip', 'data-class': name, value: c, onclick: toggle }, name, element('span', {}, number(n))),
    );
  });
}

function controls() {
  for (const chip of at('classes').querySelectorAll('button')) chip.setAttribute('aria-pressed', state.classes.has(Number(chip.value)));
  if (at('by-function').value !== state.name) at('by-function').value = state.name;
  if (at('by-text').value !== state.text) at('by-text').value = state.text;
  at('only').checked = state.only;
}

function list() {
  const item = (f) =>
    element('li', {}, element('button', { type: 'button', 'data-function': f.name, title: f.name, 'aria-current': f === state.chosen, tabindex: f === state.chosen ? 0 : -1, onclick: () => choose(f) },
      element('b', {}, f.name), element('i', {}, '+' + number(overClasses(f.added)))));
  at('functions').replaceChildren(...(shown.length ? shown.map(item) : [element('li', { class: 'none' }, 'No function: clear a filter.')]));
}

// ---- The map: squarified (Bruls, Huizing, van Wijk, 2000) --------------------------

function squarify(weights, box) {
  const cells = [];
  let left = weights.map((w) => w * ((box.w * box.h) / sum(weights)));
  let { x, y, w, h } = box;
  const worst = (row, side) => {
    const all = sum(row);
    return Math.max((side * side * Math.max(...row)) / (all * all), (all * all) / (side * side * Math.min(...row)));
  };
  while (left.length) {
    const side = Math.min(w, h);
    let n = 1;
    while (n < left.length && worst(left.slice(0, n + 1), side) <= worst(left.slice(0, n), side)) n += 1;
    const row = left.slice(0, n);
    const thick = sum(row) / side;
    let along = 0;
    for (const area of row) {
      const length = area / thick;
      cells.push(w >= h ? { x, y: y + along, w: thick, h: length } : { x: x + along, y, w: length, h: thick });
      along += length;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    left = left.slice(n);
  }
  return cells;
}

// What most names begin with (`e1000_`) takes room in the map and says nothing.
const beginnings = Map.groupBy(data.functions, (f) => f.name.slice(0, f.name.indexOf('_') + 1));
const [common] = [...beginnings].find(([start, those]) => start && those.length > data.functions.length / 2) || [''];
const short = (f) => (common && f.name.startsWith(common) && f.name.length > common.length ? f.name.slice(common.length) : f.name);
const density = (f) => overClasses(f.added) / f.rows.length;

function map() {
  const box = at('treemap');
  const functions = shown.filter((f) => overClasses(f.added) > 0).slice(0, CELLS);
  const cells = functions.length ? squarify(functions.map((f) => overClasses(f.added)), { x: 0, y: 0, w: box.clientWidth || 1200, h: box.clientHeight || 240 }) : [];
  const densest = Math.max(...functions.map(density));
  const focus = functions.includes(state.chosen) ? state.chosen : functions[0];
  box.replaceChildren(...functions.map((f, n) => {
    const cell = cells[n];
    const most = f.added.reduce((best, a, c) => (state.classes.has(c) && (best < 0 || a > f.added[best]) ? c : best), -1);
    const added = '+' + number(overClasses(f.added));
    const made = element('button', { type: 'button', 'data-class': data.classes[most], 'data-function': f.name, title: `${f.name} ${added}`, 'aria-label': `${f.name}, ${added} instructions`, 'aria-current': f === state.chosen, tabindex: f === focus ? 0 : -1, onclick: () => choose(f) });
    Object.assign(made.style, { left: cell.x + 'px', top: cell.y + 'px', width: Math.max(1, cell.w - 1.5) + 'px', height: Math.max(1, cell.h - 1.5) + 'px' });
    made.style.setProperty('--dense', `${Math.round(12 + (30 * density(f)) / densest)}%`);
    if (cell.w > 40 && cell.h > 18) made.append(short(f));
    else made.style.padding = '0';
    if (cell.w > 40 && cell.h > 38) made.append(element('span', {}, added));
    return made;
  }));
}

// ---- Code ------------------------------------------------------------------------

function marked(text) {
  const low = text.toLowerCase();
  const searched = state.text.toLowerCase();
  if (!searched || !low.includes(searched)) return [text];
  const parts = [];
  let from = 0;
  for (let found = low.indexOf(searched); found >= 0; found = low.indexOf(searched, from)) {
    parts.push(text.slice(from, found), element('mark', {}, text.slice(found, found + searched.length)));
    from = found + searched.length;
  }
  parts.push(text.slice(from));
  return parts;
}

const labelled = (label, width) => element('span', { class: 'label' }, (label ? label + ':' : '').padEnd(width));

function after(lines) {
  const box = element('div');
  if (!lines.length) box.append(element('span', { class: 'apart' }, '(dropped)'));
  lines.forEach((line, n) => {
    if (n) box.append('\n');
    if (line === -1) box.append(element('span', { class: 'apart' }, '      out of line'));
    else if (Array.isArray(line)) box.append(labelled(line[0], 6), ...(line[1] < 0 ? [] : marked(data.strings[line[1]])));
    else box.append('      ', ...marked(data.strings[line]));
  });
  return box;
}

function siteRow(site, offset, before) {
  const name = data.classes[site.c];
  const facts = site.s ? [['scratch', site.s], ['spills', site.p || 'none'], ['flags', site.f]] : [];
  const about = element('div', { class: 'about' }, element('span', { class: 'class' }, name), element('b', {}, (site.a < 0 ? '' : '+') + site.a), ...(site.m ? [element('span', {}, site.m)] : []),
    ...facts.map(([what, value]) => element('span', {}, `${what} ${value}`)));
  before.append(about);
  const row = element('div', { class: 'row site' + (state.classes.has(site.c) ? '' : ' off'), 'data-class': name, tabindex: -1 }, offset, before, after(site.l));
  return row;
}

function codeRow(row) {
  const [place, label, text, site] = row;
  const offset = element('span', {}, place.toString(16));
  const before = element('div', {}, labelled(label, 6), ...marked(data.strings[text]));
  return site ? siteRow(site, offset, before) : element('div', { class: 'row' }, offset, before);
}

let rest = [];
function more(atLeast = 0) {
  const rows = rest.splice(0, Math.max(CHUNK, atLeast));
  at('code').append(...rows.map(codeRow));
  if (!rest.length) return;
  const sentinel = element('div', { class: 'none' }, `${number(rest.length)} more instructions`);
  at('code').append(sentinel);
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    sentinel.remove();
    more();
  }, { rootMargin: '600px' }).observe(sentinel);
}

function code() {
  const f = state.chosen;
  at('name').textContent = f ? f.name : 'No function';
  at('about').textContent = f ? `${f.section}+0x${f.rows[0][0].toString(16)}, ${number(f.rows.length)} instructions, ${number(sum(f.count))} sites, +${number(sum(f.added))}` : '';
  at('code').replaceChildren();
  rest = f ? f.rows.filter((row) => !state.only || (row.length > 3 && state.classes.has(row[3].c))) : [];
  // What was searched for is among the rows that are made.
  more(matching ? rest.findIndex(rowMatches) + 1 : 0);
}

function step(by) {
  const sites = () => [...at('code').querySelectorAll('.site:not(.off)')];
  const here = sites().indexOf(document.activeElement);
  if (here + by >= sites().length && rest.length) {
    at('code').querySelector('.none')?.remove();
    more();
  }
  const to = sites()[here < 0 ? (by > 0 ? 0 : sites().length - 1) : here + by];
  if (to) to.focus();
}

// ---- What happens ------------------------------------------------------------------

// Scrolls the list, and not the page, to the function that is shown.
function reveal() {
  const box = at('functions');
  const current = box.querySelector('[aria-current="true"]')?.closest('li');
  if (!current) return;
  const below = current.offsetTop + current.offsetHeight > box.scrollTop + box.clientHeight;
  if (current.offsetTop < box.scrollTop || below) box.scrollTop = current.offsetTop - box.clientHeight / 2;
}

function choose(f) {
  state.chosen = f;
  for (const button of document.querySelectorAll('[data-function]')) {
    const current = button.dataset.function === f.name;
    button.setAttribute('aria-current', current);
    button.tabIndex = current ? 0 : -1;
  }
  reveal();
  code();
  writeAddress();
}

function changed() {
  const searched = state.text.toLowerCase();
  matching = searched ? data.strings.map((text) => text.toLowerCase().includes(searched)) : null;
  shown = data.functions.filter(visible).sort((a, b) => overClasses(b.added) - overClasses(a.added) || (a.name < b.name ? -1 : 1));
  if (!shown.includes(state.chosen)) state.chosen = shown[0] || null;
  controls();
  list();
  map();
  code();
  const tab = at('functions').querySelector('[tabindex="0"]') || at('functions').querySelector('button');
  if (tab) tab.tabIndex = 0;
  reveal();
  at('status').textContent = `${number(shown.length)} of ${number(data.functions.length)} functions, ${number(sum(shown.map((f) => overClasses(f.count))))} sites, +${number(sum(shown.map((f) => overClasses(f.added))))}`;
  writeAddress();
}

function arrows(container) {
  container.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const all = [...container.querySelectorAll('button')];
    const to = all[all.indexOf(document.activeElement) + by];
    if (to) to.focus();
    event.preventDefault();
  });
}

let waiting = 0;
const soon = () => {
  clearTimeout(waiting);
  waiting = setTimeout(changed, 120);
};
at('by-function').addEventListener('input', (event) => { state.name = event.target.value; soon(); });
at('by-text').addEventListener('input', (event) => { state.text = event.target.value; soon(); });
at('by-text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return;
  clearTimeout(waiting);
  changed();
  at('code').querySelector('mark')?.scrollIntoView({ block: 'center' });
});
at('only').addEventListener('change', (event) => { state.only = event.target.checked; changed(); });
at('clear').addEventListener('click', () => {
  Object.assign(state, { classes: new Set(data.classes.keys()), name: '', text: '', only: false });
  changed();
});
at('previous').addEventListener('click', () => step(-1));
at('next').addEventListener('click', () => step(1));
at('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input[type="search"]')) return;
  if (event.key === '/') { at('by-text').focus(); event.preventDefault(); }
  if (event.key === 'j') step(1);
  if (event.key === 'k') step(-1);
});
arrows(at('treemap'));
arrows(at('functions'));
addEventListener('resize', map);
addEventListener('hashchange', () => { readAddress(); changed(); });
readAddress();
header();
changed();
document.body.dataset.ready = 'yes';
