//! Random C functions that lean on the stack: many arguments, structures by value, variable
//! arguments, arrays and lists in the frame, pointers to variables that are passed on,
//! recursion, tables of functions, what compilers make strings, atomics and bits of.
//!
//! A program is text that [`TEMPLATES`] and [`EXPRESSIONS`] give: each `$x` in them is
//! replaced by something random.
//!
//! ```text
//! $0 $1 $2   an expression, so deep            $L   something that can be assigned
//! $d         one that is a level less deep     $P   a `u64 *`
//! $t $u      an integer type, unsigned         $W   a number of 128 bits
//! $o $q $r   operators: sum, assignment, comparison
//! $v $w $p   a variable: u64, u128, u64 *      $C   a call
//! $a $n $m   an array of u64, its length, less 1
//! $b $k $j   an array of bytes, its length, less 1
//! $S $s      a structure's type and variable   $B   a block
//! $#         a number that no other template has
//! ```
//!
//! No program reads what it has not written, or what is outside of its variables and of
//! `dom0_data`. Structures with padding are not copied to memory that is compared.

use process_lab::random::{Random, seed};

/// What programs begin with.
const PRELUDE: &str = include_str!("functions.c");

const INTEGERS: [&str; 10] = [
    "u64", "u64", "u64", "u32", "u16", "u8", "s64", "s32", "s16", "s8",
];
const STRUCTURES: [&str; 7] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"];

const EXPRESSIONS: [&str; 24] = [
    "($d $o $d)",
    "($d $o $d)",
    "($d $o $d)",
    "($d $o $d)",
    "((u64)$d >> ($d & 31))",
    "((u64)$d << ($d & 63))",
    "((u64)$d / ((u32)$d | 1))",
    "($d $r $d ? $d : $d)",
    "($d $r $d)",
    "M($t, $d)",
    "MU($t, $d)",
    "($t)$d",
    "(~$d)",
    "$a[($d) & $m]",
    "$a[($d) & $m]",
    "*(($u *)($b + (($d) & $j)))",
    "$b[($d) & $j]",
    "(u64)(((u128)(u64)$d * (u64)$d) >> 64)",
    "(u64)($w >> 32)",
    "h_$S($s)",
    "*$p",
    "__builtin_bswap64($d)",
    "$C",
    "$C",
];

const TEMPLATES: [&str; 66] = [
    "$L $q $2;",
    "$L $q $2;",
    "$L $q $2;",
    "$L = $2;",
    "$L ^= $C;",
    "$L ^= $C;",
    "$L ^= $C;",
    "if ($2) { $B } else { $B }",
    "if ($1 $r $1) { $B }",
    "{ u32 i$#; for (i$# = 0; i$# < (($1) & 7); i$#++) { $L += i$#; $B } }",
    "switch (($1) & 7) { case 0: $B break; case 1: $B case 2: $B break; case 3: $B break; \
     case 4: $B break; case 5: $B break; default: $B }",
    "do { $B if ($1) break; $B } while (0);",
    "if ($1 == $1) return $R;",
    // Strings.
    "memcpy($b, &M(u8, $1), $k);",
    "memcpy($b, &M(u8, $1), ($1) & $j);",
    "memset($b, $0, $k);",
    "memset($b, $0, ($1) & $j);",
    "memcpy(&M(u8, ($1) & 0x6000), $b, $k);",
    "memmove($b + 3, $b, $k / 2);",
    "$L ^= memcmp($b, &M(u8, $1), 4) < 0;",
    "$L ^= ({ $b[$k] = 0; strlen($b); });",
    "{ u64 d = (u64)$b, c = ($1) & ($k / 8 - 1); const void *s = &M(u64, $1); \
     asm volatile(\"rep movsq\" : \"+D\"(d), \"+S\"(s), \"+c\"(c) :: \"memory\"); $L ^= c; }",
    "{ u64 d = (u64)$b, c = $k; u8 z; asm volatile(\"repne scasb; sete %2\" : \"+D\"(d), \"+c\"(c), \
     \"=q\"(z) : \"a\"($0) : \"memory\", \"cc\"); $L ^= c + z + (d - (u64)$b); }",
    // Addresses that are passed on.
    "fill($a, $1, $n);",
    "fill(&$a[$n / 2], $1, ($1) & ($n / 2 - 1));",
    "bump(&$a[($1) & $m]);",
    "swap2(&$a[0], &$a[($1) & $m]);",
    "bump(&$v);",
    "swap2(&$v, &$v);",
    "{ void *p$#[2] = { &$v, &$v }; *(u64 *)chase(&p$#[($1) & 1]) += $1; }",
    "$p = $P;",
    "*$p $q $1;",
    "if (__builtin_expect($1 == 12345, 0)) cold1(&$v, $1);",
    "if (__builtin_expect($1 > 99, 0)) $L ^= cold2($1, $0, $1, $0, $1, $0, $1, $0);",
    "$L ^= sum_va(3, (u64)$1, (u64)$1, (u64)$1);",
    "$L ^= sum_va(8, (u64)$1, (u64)$0, (u64)$1, (u64)$0, (u64)$1, (u64)$0, (u64)$1, (u64)$1);",
    "$L ^= sum_va2($1, 5, (u64)$1, (u64)$1, (u64)$1, (u64)$0, (u64)$1);",
    // Lists with their heads in the frame.
    "{ struct list h; struct node n[2]; list_init(&h); n[0].v = $1; n[0].w = $0; n[1].v = $0; \
     n[1].w = $1; list_add(&n[0].l, &h); list_tail(&n[1].l, &h); $L ^= list_sum(&h); }",
    "{ struct list h, g; struct node n[1]; list_init(&h); list_init(&g); n[0].v = $1; n[0].w = $0; \
     list_add(&n[0].l, &h); list_splice_n(&h, &g); $L ^= list_sum(&g); $L += h.next == &h; }",
    "{ struct list h; struct node n[3]; u64 q = 0; list_init(&h); n[0].v = $1; n[1].v = $1; \
     n[2].v = $0; list_add(&n[0].l, &h); list_add(&n[1].l, &h); list_tail(&n[2].l, &h); \
     while (h.next != &h) { struct list *p = h.next; list_del(p); q = q * 3 + node_of(p)->v; } $L ^= q; }",
    // Bits, atomics, flags.
    "bts(&M(u64, $1), ($1) & 63);",
    "bts($a, ($1) & ($n * 64 - 1));",
    "lock_btr($a, ($1) & ($n * 64 - 1));",
    "$L += btest($a, ($1) & ($n * 64 - 1));",
    "lock_btr(&$v, ($1) & 63);",
    "$L += __sync_fetch_and_add(&M(u64, $1), $1);",
    "$L += __sync_fetch_and_add(&$v, $1);",
    "$L += __sync_bool_compare_and_swap(&$v, $0, $1);",
    "$L ^= __sync_val_compare_and_swap(&M(u64, $1), $1, $1);",
    "$L ^= __atomic_exchange_n(&M(u32, $1), $1, 5);",
    "$L ^= __atomic_fetch_xor(&$v, $1, 5);",
    "$L += __builtin_add_overflow((u64)$1, (u64)$1, &$v);",
    "$L += __builtin_mul_overflow((u64)$1, (u64)$1, &$v);",
    "$w += $W;",
    "$w -= $w >> 3;",
    "$L += $w < $W;",
    "M(u128, ($1) & 0x7fe0) ^= $w;",
    // Structures, and pointers to large ones.
    "$s = m_$S($1);",
    "M(struct s2, ($1) & 0x6ff8) = m_s2($1);",
    "{ struct big *g = (struct big *)(dom0_data + 128 + ((u64)($1) & 0x3f00)); g->a += g->b ^ $0; \
     g->x[1] -= g->z[($1) & 7]; g->y[($0) & 7] ^= g->c; $L ^= g->a + g->c; }",
    "{ struct big *g = (struct big *)(dom0_data + 0xff0 + ((u64)($1) & 31)); g->c = g->a + $0; \
     bump8((u8 *)&g->b); g = (struct big *)((char *)g + 8); $L += g->b - g->a; }",
    "{ $u *p = ($u *)(dom0_data + 64 + (((u64)$1 & 6) << 12) + 0xfe0), *e = p + (($1) & 31); \
     while (p < e) { *p ^= p[1] + p[-1]; p++; } }",
    "$L ^= ({ u64 o; asm volatile(\"push %1; pop %0\" : \"=r\"(o) : \"r\"((u64)($1)) : \"memory\"); o; });",
    "asm volatile(\"\" ::: \"rbx\", \"r12\", \"r13\", \"r14\", \"r15\");",
    "{ volatile u64 o = $1; o += $1; $L ^= o; }",
    "asm volatile(\"incl %%gs:%0\" : \"+m\"(*(u32 *)(($1) & 0x1ff8)));",
];

/// A function that others call: name, type of its result, types of its arguments.
struct Function {
    name: String,
    result: &'static str,
    arguments: Vec<&'static str>,
}

/// Names that the function in progress has.
#[derive(Default)]
struct Scope {
    /// Expressions that are integers.
    values: Vec<String>,
    /// `u64`, not in memory that is shared.
    words: Vec<String>,
    wide: Vec<String>,
    pointers: Vec<String>,
    arrays: Vec<(String, u64)>,
    buffers: Vec<(String, u64)>,
    structures: Vec<(&'static str, String)>,
    result: &'static str,
}

/// The program of a seed, for any C compiler of GNU C.
pub fn program(number: u64) -> String {
    let mut program = Program {
        random: Random::new(seed("functions", number)),
        text: PRELUDE.to_owned(),
        functions: Vec::new(),
        scope: Scope::default(),
        names: 0,
        calls: 0,
    };
    for _ in 0..3 + program.random.below(6) {
        match program.random.below(7) {
            0 => program.recursive(),
            1 => program.table(),
            _ => program.any(),
        }
    }
    program.function("start", "u64", vec!["u64"; 6], "");
    program.text
}

struct Program {
    random: Random,
    text: String,
    functions: Vec<Function>,
    scope: Scope,
    names: u64,
    /// Calls that the expression in progress is an argument of.
    calls: u64,
}

fn pick<'t, T>(random: &mut Random, from: &'t [T]) -> Option<&'t T> {
    match from.len() {
        0 => None,
        n => from.get(random.below(n as u64) as usize),
    }
}

/// How C writes the type of an argument or a result.
fn written(kind: &str) -> String {
    match kind {
        "pointer" => "u64 *".to_owned(),
        kind if STRUCTURES.contains(&kind) => format!("struct {kind}"),
        kind => kind.to_owned(),
    }
}

impl Program {
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}_{}", self.names)
    }

    fn one_of<T: Clone>(&mut self, from: &[T]) -> T {
        pick(&mut self.random, from).expect("some").clone()
    }

    fn expression(&mut self, depth: u64) -> String {
        if depth > 0 && !self.random.one_in(6) {
            for _ in 0..4 {
                let template = self.one_of(&EXPRESSIONS);
                if let Some(text) = self.expand(template, depth) {
                    return text;
                }
            }
        }
        match pick(&mut self.random, &self.scope.values) {
            Some(value) if !self.random.one_in(4) => value.clone(),
            _ => self
                .one_of(&["0", "1", "5", "0x1234", "-1", "0x123456789abcul", "255"])
                .to_owned(),
        }
    }

    fn statements(&mut self, count: u64, depth: u64) -> String {
        let mut text = String::new();
        for _ in 0..count {
            let made = (0..8).find_map(|_| {
                let template = self.one_of(&TEMPLATES);
                let fits = depth > 0 || !template.contains("$B");
                fits.then(|| self.expand(template, depth)).flatten()
            });
            text += &made.unwrap_or_default();
            text.push(' ');
        }
        text
    }

    /// A template with everything replaced, if there is all that it needs.
    fn expand(&mut self, template: &str, depth: u64) -> Option<String> {
        let array = pick(&mut self.random, &self.scope.arrays).cloned();
        let buffer = pick(&mut self.random, &self.scope.buffers).cloned();
        let structure = pick(&mut self.random, &self.scope.structures).cloned();
        self.names += 1;
        let number = self.names;
        let mut text = String::new();
        let mut rest = template.chars();
        while let Some(c) = rest.next() {
            if c != '$' {
                text.push(c);
                continue;
            }
            text += &match rest.next()? {
                '0' => self.expression(0),
                '1' => self.expression(1),
                '2' => self.expression(2),
                'd' => self.expression(depth - 1),
                't' => self.one_of(&INTEGERS).to_owned(),
                'u' => self.one_of(&["u8", "u16", "u32", "u64"]).to_owned(),
                'o' => self.one_of(&["+", "-", "*", "&", "|", "^"]).to_owned(),
                'q' => self.one_of(&["=", "+=", "-=", "^=", "|=", "*="]).to_owned(),
                'r' => self.one_of(&["<", ">", "==", "!=", "<="]).to_owned(),
                'v' => pick(&mut self.random, &self.scope.words)?.clone(),
                'w' => pick(&mut self.random, &self.scope.wide)?.clone(),
                'p' => pick(&mut self.random, &self.scope.pointers)?.clone(),
                'a' => array.as_ref()?.0.clone(),
                'n' => array.as_ref()?.1.to_string(),
                'm' => (array.as_ref()?.1 - 1).to_string(),
                'b' => buffer.as_ref()?.0.clone(),
                'k' => buffer.as_ref()?.1.to_string(),
                'j' => (buffer.as_ref()?.1 - 1).to_string(),
                'S' => structure.as_ref()?.0.to_owned(),
                's' => structure.as_ref()?.1.clone(),
                'L' => self.assignable(),
                'P' => self.argument("pointer"),
                'W' => self.argument("u128"),
                'R' => self.argument(self.scope.result),
                'C' => self.call()?,
                'B' => {
                    let count = 1 + self.random.below(2);
                    self.statements(count, depth.saturating_sub(1))
                }
                '#' => number.to_string(),
                other => unreachable!("${other} in {template}"),
            };
        }
        Some(text)
    }

    fn assignable(&mut self) -> String {
        let templates = [
            "$v",
            "$v",
            "$v",
            "$a[($1) & $m]",
            "$a[0]",
            "$b[($1) & $j]",
            "*$p",
            "M($t, $1)",
            "*(($u *)($b + (($1) & $j)))",
        ];
        let made = (0..4).find_map(|_| {
            let template = self.one_of(&templates);
            self.expand(template, 1)
        });
        made.unwrap_or_else(|| format!("MU({}, 24)", self.one_of(&INTEGERS)))
    }

    /// An expression of that type.
    fn argument(&mut self, kind: &str) -> String {
        let depth = self.random.below(3);
        let template = match kind {
            "pointer" => self.one_of(&["&$v", "&$v", "&$a[($1) & $m]", "$a", "$p", "&M(u64, $1)"]),
            "u128" => self.one_of(&["$w", "((u128)$1 << 64 | (u64)$1)"]),
            kind if STRUCTURES.contains(&kind) => {
                let known = self.scope.structures.iter().find(|(k, _)| *k == kind);
                let known = known.map(|(_, name)| name.clone());
                let made = format!("m_{kind}({})", self.expression(1));
                return known.filter(|_| !self.random.one_in(3)).unwrap_or(made);
            }
            _ => return self.expression(depth),
        };
        let expanded = self.expand(template, 1);
        expanded.unwrap_or_else(|| match kind {
            "pointer" => "&M(u64, 40)".to_owned(),
            _ => format!("(u128){}", self.expression(1)),
        })
    }

    fn call(&mut self) -> Option<String> {
        // Arguments are as deep as other expressions: calls in calls in calls have no end.
        if self.calls == 2 {
            return None;
        }
        let count = self.functions.len() as u64;
        let n = self.random.below(count.clamp(1, 8)) as usize;
        let function = self.functions.iter().rev().nth(n)?;
        let (name, result) = (function.name.clone(), function.result);
        let kinds = function.arguments.clone();
        self.calls += 1;
        let arguments: Vec<String> = kinds.into_iter().map(|kind| self.argument(kind)).collect();
        self.calls -= 1;
        let call = format!("{name}({})", arguments.join(", "));
        Some(match result {
            "u128" => format!("(u64)({call} >> 13)"),
            result if STRUCTURES.contains(&result) => format!("h_{result}({call})"),
            _ => call,
        })
    }

    fn kinds(&mut self, count: u64) -> Vec<&'static str> {
        (0..count)
            .map(|_| match self.random.below(10) {
                0 => self.one_of(&STRUCTURES),
                1 => "u128",
                2 | 3 => "pointer",
                _ => self.one_of(&INTEGERS),
            })
            .collect()
    }

    fn any(&mut self) {
        let count = self.one_of(&[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12]);
        let arguments = self.kinds(count);
        let result = match self.random.below(4) {
            0 => self.one_of(&STRUCTURES),
            1 => self.one_of(&["u128", "u32", "s16", "u8"]),
            _ => "u64",
        };
        let name = self.name("f");
        let storage = self.one_of(&["static noinline", "static noinline", "static", "noinline"]);
        self.function(&name, result, arguments, storage);
    }

    fn function(
        &mut self,
        name: &str,
        result: &'static str,
        arguments: Vec<&'static str>,
        storage: &str,
    ) {
        self.scope = Scope {
            result,
            ..Scope::default()
        };
        let mut list = Vec::new();
        for kind in &arguments {
            let argument = self.name("a");
            list.push(format!("{} {argument}", written(kind)));
            self.declare(kind, argument);
        }
        let mut body = String::new();
        for _ in 0..self.random.below(7) {
            body += &self.variable();
        }
        let count = 2 + self.random.below(7);
        body += &self.statements(count, 2);
        let value = self.argument(result);
        let sum: Vec<String> = match INTEGERS.contains(&result) {
            true => self.scope.words.iter().rev().take(4).cloned().collect(),
            false => Vec::new(),
        };
        let value = [vec![value], sum].concat().join(" + ");
        let (result_type, list) = (written(result), list.join(", "));
        let list = if list.is_empty() { "void" } else { &list };
        self.text +=
            &format!("{storage} {result_type} {name}({list}) {{ {body} return {value}; }}\n");
        self.functions.push(Function {
            name: name.to_owned(),
            result,
            arguments,
        });
    }

    fn declare(&mut self, kind: &'static str, name: String) {
        let scope = &mut self.scope;
        match kind {
            "u64" => {
                scope.values.push(name.clone());
                scope.words.push(name);
            }
            "u128" => scope.wide.push(name),
            "pointer" => scope.pointers.push(name),
            kind if STRUCTURES.contains(&kind) => scope.structures.push((kind, name)),
            _ => scope.values.push(name),
        }
    }

    /// A variable that is declared and written.
    fn variable(&mut self) -> String {
        match self.random.below(8) {
            0 => {
                let (name, length) = (self.name("x"), self.one_of(&[2, 4, 8, 16]));
                let value = self.expression(1);
                let aligned = self.one_of(&["", "", "", "__attribute__((aligned(32)))"]);
                self.scope.arrays.push((name.clone(), length));
                format!("{aligned} u64 {name}[{length}]; fill({name}, {value}, {length}); ")
            }
            1 => {
                let (name, length) = (self.name("b"), self.one_of(&[16, 32, 64, 128]));
                let value = self.expression(0);
                self.scope.buffers.push((name.clone(), length));
                format!("u8 {name}[{length} + 8]; memset({name}, {value}, {length} + 8); ")
            }
            n => {
                let kind = match n {
                    2 => self.one_of(&STRUCTURES),
                    3 => "pointer",
                    4 => "u128",
                    _ => "u64",
                };
                let (name, value) = (self.name("l"), self.argument(kind));
                self.declare(kind, name.clone());
                format!("{} {name} = {value}; ", written(kind))
            }
        }
    }

    /// A function that calls itself, at its end or before, with arguments in other places.
    fn recursive(&mut self) {
        let (name, count) = (self.name("r"), self.one_of(&[3, 7, 8, 9]));
        let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
        self.scope = Scope {
            values: names.clone(),
            words: names.clone(),
            result: "u64",
            ..Scope::default()
        };
        let (body, end) = (self.statements(2, 1), self.expression(2));
        let next: Vec<String> = (0..count)
            .map(|n| match self.random.below(3) {
                0 => names[n].clone(),
                1 => self.expression(1),
                _ => names[(n + 1) % count].clone(),
            })
            .collect();
        let call = format!("{name}_(d - 1, {})", next.join(", "));
        let go_on = match self.random.below(3) {
            0 => format!("return {call};"),
            1 => format!("u64 z = {call}; return z + a0 * 3;"),
            _ => format!("u64 l = a1; u64 z = {call}; bump(&l); return z ^ l;"),
        };
        let list: Vec<String> = names.iter().map(|a| format!("u64 {a}")).collect();
        let (list, passed) = (list.join(", "), names.join(", "));
        self.text += &format!(
            "static noinline u64 {name}_(int d, {list}) {{ {body} if (d <= 0) return {end}; {go_on} }}\n\
             static noinline u64 {name}({list}) {{ return {name}_(a0 & 3, {passed}); }}\n"
        );
        self.functions.push(Function {
            name,
            result: "u64",
            arguments: vec!["u64"; count],
        });
    }

    /// Four functions that are called by way of a table.
    fn table(&mut self) {
        let count = self.one_of(&[1, 3, 7, 9]);
        let arguments = self.kinds(count);
        let functions: Vec<String> = (0..4).map(|_| self.name("t")).collect();
        for name in &functions {
            self.function(name, "u64", arguments.clone(), "static noinline");
        }
        let name = self.name("table");
        let list: Vec<String> = arguments.iter().map(|kind| written(kind)).collect();
        let (list, functions) = (list.join(", "), functions.join(", "));
        let constant = self.one_of(&["", "const "]);
        self.text += &format!("static u64 (*{constant}{name}[4])({list}) = {{ {functions} }};\n");
        self.functions.push(Function {
            name: format!("{name}[M(u64, 88) & 3]"),
            result: "u64",
            arguments,
        });
    }
}
