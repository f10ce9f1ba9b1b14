//! `twin explain --html`: the page stands alone, and works in a browser.
//!
//! The tests in a browser need Chromium: `make test-html` installs it and runs
//! them. They add a script to the page that types, clicks and reads, as a user would,
//! and print its results.

use std::path::Path;
use std::process::Command;

use crate::sandbox::Sandbox;
use crate::stock;

/// Milliseconds of the page's own time that it may take.
const BUDGET: &str = "--virtual-time-budget=30000";

fn page(sandbox: &Sandbox, file: &str) -> String {
    let outcome = sandbox.run(&["explain", file, "--html"]).ok();
    outcome.text().to_owned()
}

fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("the data");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn the_page_loads_nothing() {
    let page = page(&Sandbox::with_driver(), "driver.o");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_data_has_every_instruction_and_every_site() {
    let sandbox = Sandbox::with_driver();
    let data = data(&page(&sandbox, "driver.o"));
    let function = &data["functions"][0];
    assert_eq!(function["name"], "poll");
    let rows = function["rows"].as_array().expect("rows");
    let text = |row: &serde_json::Value| {
        let n = row[2].as_u64().expect("a string's number") as usize;
        data["strings"][n].as_str().expect("a string").to_owned()
    };
    let texts: Vec<String> = rows.iter().map(text).collect();
    assert_eq!(
        texts,
        [
            "mov 0x10(%rdi),%rax",
            "cmpl $3,8(%rax)",
            "je .L1",
            "movl $1,(%rax)",
            "call napi_schedule",
            "ret"
        ]
    );
    assert_eq!(rows[5][1], ".L1", "the label of a branch's target");
    assert!(rows[0][3]["a"].as_i64() > Some(5));
    let outcome = sandbox.run(&["explain", "driver.o", "--html", "-o", "page.html"]);
    assert_eq!(outcome.ok().text(), "");
    assert!(sandbox.read("page.html").starts_with(b"<!doctype html>"));
}

#[test]
fn the_page_of_one_function() {
    let sandbox = Sandbox::with_driver();
    let outcome = sandbox.run(&["explain", "driver.o", "--html", "--function", "poll"]);
    let data = data(outcome.ok().text());
    assert_eq!(data["functions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_page_has_to_be_asked_for() {
    let outcome = Sandbox::with_driver().run(&["explain", "driver.o", "-o", "page.html"]);
    assert_eq!(outcome.status, 2);
}

/// The page with a script added that does `steps` and writes its results to an element
/// of its own, run in Chromium.
fn browse(page: &str, fragment: &str, steps: &str) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("page.html");
    let script = format!(
        "<script>
        const report = document.createElement('pre');
        report.id = 'report';
        const say = (...what) => report.append(what.join(' ') + '\\n');
        const pause = (ms) => new Promise((done) => setTimeout(done, ms));
        const type = async (id, text) => {{
          const input = document.getElementById(id);
          input.value = text;
          input.dispatchEvent(new Event('input', {{ bubbles: true }}));
          await pause(300);
        }};
        const press = (key) => document.activeElement.dispatchEvent(
          new KeyboardEvent('keydown', {{ key, bubbles: true, cancelable: true }}));
        const all = (selector) => [...document.querySelectorAll(selector)];
        const names = () => all('#functions b').map((b) => b.textContent);
        const text = (id) => document.getElementById(id).textContent;
        (async () => {{ {steps} }})().catch((error) => say('failed:', error))
          .finally(() => document.body.append(report));
        </script></body>"
    );
    std::fs::write(&file, page.replace("</body>", &script)).expect("a page");
    let output = chromium(directory.path())
        .args(["--dump-dom", BUDGET, "--enable-logging=stderr", "--v=0"])
        .arg(format!("file://{}{fragment}", file.display()))
        .output()
        .expect("chromium runs; `make test-html` installs it");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = stderr.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "the console says: {console:#?}");
    let dom = String::from_utf8_lossy(&output.stdout);
    let report = dom.split_once("<pre id=\"report\">");
    let report = report.and_then(|(_, rest)| rest.split_once("</pre>"));
    let (report, _) = report.unwrap_or_else(|| panic!("no report: {stderr}"));
    report.replace("&gt;", ">").replace("&lt;", "<")
}

fn chromium(directory: &Path) -> Command {
    let name = std::env::var_os("TWIN_CHROMIUM").unwrap_or("chromium".into());
    let mut command = Command::new(name);
    // Its own sandbox needs features that containers lack; the page is ours.
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--window-size=1400,1000", "--hide-scrollbars"])
        .arg(format!(
            "--user-data-dir={}",
            directory.join("profile").display()
        ));
    command
}

fn e1000() -> String {
    page(&Sandbox::new(), &stock::e1000())
}

#[test]
#[ignore = "needs chromium: make test-html"]
fn filters_work_in_a_browser() {
    let report = browse(
        &e1000(),
        "",
        "
        const everything = names().length;
        say('all shown', everything === data.functions.length && everything > 100);
        say('cells', all('#treemap button').length > 100);
        await type('by-function', 'clean_rx');
        say('by name', names().join(' '), text('name'));
        await type('by-function', 'no such function');
        say('none', names().length, text('functions'));
        await type('by-function', '');
        await type('by-text', 'rep ');
        say('by text', names().length > 0 && names().length < everything, all('#code mark').length > 0);
        document.getElementById('clear').click();
        say('cleared', names().length === everything);
        for (const chip of all('#classes button')) if (chip.dataset.class !== 'string') chip.click();
        say('strings only', names().length > 0 && names().length < 40, location.hash.includes('class=string'));
        document.getElementById('only').click();
        say('only sites', all('#code .row').every((row) => row.dataset.class === 'string'));
        say('status', /^[0-9]+ of [0-9]+ functions, [0-9]+ sites, [+][0-9,]+$/.test(text('status')));
        ",
    );
    assert_eq!(
        report,
        "all shown true\ncells true\nby name e1000_clean_rx_irq e1000_clean_rx_ring e1000_clean_rx_irq\n\
         none 0 No function: clear a filter.\nby text true true\ncleared true\nstrings only true true\n\
         only sites true\nstatus true\n"
    );
}

#[test]
#[ignore = "needs chromium: make test-html"]
fn the_keyboard_is_enough() {
    let report = browse(
        &e1000(),
        "",
        "
        say('one stop each', all('#treemap [tabindex=\"0\"]').length, all('#functions [tabindex=\"0\"]').length);
        document.querySelector('#treemap button').focus();
        press('ArrowRight');
        document.activeElement.click();
        const second = names()[1];
        say('the second', text('name') === second, document.activeElement.ariaLabel.startsWith(second));
        document.querySelector('#functions [tabindex=\"0\"]').focus();
        press('ArrowDown');
        document.activeElement.click();
        say('the third', text('name') === names()[2]);
        press('/');
        say('search', document.activeElement.id);
        document.activeElement.blur();
        press('j'); press('j');
        say('second site', all('#code .site').indexOf(document.activeElement));
        press('k');
        say('first site', all('#code .site').indexOf(document.activeElement));
        for (let n = 0; n < 250; n += 1) press('j');
        say('beyond the first rows', all('#code .site').indexOf(document.activeElement) > 100);
        say('named', all('button, input').every((e) => e.textContent || e.ariaLabel || e.labels?.length));
        ",
    );
    assert_eq!(
        report,
        "one stop each 1 1\nthe second true true\nthe third true\nsearch by-text\nsecond site 1\n\
         first site 0\nbeyond the first rows true\nnamed true\n"
    );
}

#[test]
#[ignore = "needs chromium: make test-html"]
fn the_address_says_what_is_seen() {
    let report = browse(
        &e1000(),
        "#f=e1000_set_mac&q=cmp&class=heap&only=1&theme=dark",
        "
        say(text('name'), document.getElementById('by-text').value, document.getElementById('only').checked);
        say(getComputedStyle(document.body).backgroundColor, all('#classes [aria-pressed=\"true\"]').length);
        document.getElementById('clear').click();
        const [box, item] = [document.getElementById('functions'), document.querySelector('#functions [aria-current=\"true\"]')];
        const [outer, inner] = [box.getBoundingClientRect(), item.getBoundingClientRect()];
        say('in view', inner.top >= outer.top - 1, inner.bottom <= outer.bottom + 1);
        choose(data.functions.find((f) => f.name === 'e1000_diag_test'));
        say(text('name'), state.chosen.rows.length > 1000, all('#code .row').length);
        ",
    );
    assert_eq!(
        report,
        "e1000_set_mac cmp true\nrgb(21, 23, 26) 1\nin view true true\ne1000_diag_test true 300\n"
    );
}
