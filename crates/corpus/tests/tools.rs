//! Rewritten modules checked by other projects' tools: `objtool` of the kernel's
//! build, which checks the code and makes the tables that it can, and binutils.
//!
//! The kernel's unwinder reads `.orc_unwind`. `objtool` makes these tables by
//! following the stack pointer through every path. So the tables that it makes for
//! rewritten code, spills and out-of-line parts included, are the expected ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use svm_rewrite::{Options, RefusalCode, Scheme, Target};

/// Ports and memory, bit strings and string instructions, alternatives and
/// paravirtual calls, realigned frames, vectors; drivers and others.
const SAMPLE: [&str; 13] = [
    "drivers/net/ethernet/intel/e1000/e1000",
    "drivers/net/ethernet/realtek/8139cp",
    "drivers/net/ethernet/8390/ne2k-pci",
    "drivers/net/ethernet/tehuti/tehuti",
    "drivers/net/ethernet/smsc/smc91c92_cs",
    "drivers/net/ethernet/intel/ice/ice",
    "drivers/net/ethernet/mellanox/mlx4/mlx4_en",
    "drivers/net/virtio_net",
    "drivers/virtio/virtio_pci",
    "net/mac80211/mac80211",
    "fs/ext4/ext4",
    "arch/x86/crypto/sha256-ssse3",
    "arch/x86/crypto/aesni-intel",
];

/// Those of them that this kernel has: in 6.12 `virtio_pci` is built in, in 7.3 `sha256-ssse3`,
/// too, and without `smc91c92_cs`. `aesni-intel` is refused in both, because it computes with
/// AVX-512 (the README's table of kernels).
fn sample() -> Vec<&'static str> {
    let modules = filetests::kernel("modules/kernel");
    let is_there = |module: &&str| {
        let Ok(bytes) = std::fs::read(modules.join(format!("{module}.ko"))) else {
            return false;
        };
        !bytes
            .windows(9)
            .any(|w| matches!(w, b"vaes_avx1" | b"vaes_avx5"))
    };
    let found: Vec<_> = SAMPLE.into_iter().filter(is_there).collect();
    assert!(found.len() + 4 >= SAMPLE.len(), "{found:?}");
    found
}

/// How the kernel's build calls it for a whole module, by its configuration: `objtool-args`
/// in scripts/Makefile.lib of Linux 6.1, and of 6.12, where mitigations have other names.
/// Not `--prefix`: the symbols that it makes are there.
const OBJTOOL: [(&str, &str); 14] = [
    ("HAVE_JUMP_LABEL_HACK", "--hacks=jump_label"),
    ("HAVE_NOINSTR_HACK", "--hacks=noinstr"),
    ("MITIGATION_CALL_DEPTH_TRACKING", "--hacks=skylake"),
    ("X86_KERNEL_IBT", "--ibt"),
    ("X86_KERNEL_IBT", "--link"),
    ("UNWINDER_ORC", "--orc"),
    ("RETPOLINE", "--retpoline"),
    ("MITIGATION_RETPOLINE", "--retpoline"),
    ("RETHUNK", "--rethunk"),
    ("MITIGATION_RETHUNK", "--rethunk"),
    ("SLS", "--sls"),
    ("MITIGATION_SLS", "--sls"),
    ("HAVE_STATIC_CALL_INLINE", "--static-call"),
    ("HAVE_UACCESS_VALIDATION", "--uaccess"),
];

/// The sections that it makes, and would not make anew if they were present.
const MADE: [&str; 7] = [
    ".orc_unwind",
    ".orc_unwind_ip",
    ".return_sites",
    ".retpoline_sites",
    ".static_call_sites",
    ".call_sites",
    ".ibt_endbr_seal",
];

/// The same in Linux 5.10, where it has commands (scripts/Makefile.build).
const OBJTOOL_5_10: [(&str, &str); 5] = [
    ("UNWINDER_ORC", "--no-fp"),
    ("RETPOLINE", "--retpoline"),
    ("RETHUNK", "--rethunk"),
    ("X86_SMAP", "--uaccess"),
    ("SLS", "--sls"),
];

/// Whether this kernel's objtool has commands.
fn has_commands() -> bool {
    let kernel = std::env::var("KERNEL").unwrap_or_default();
    kernel.split('-').next() == Some("5.10")
}

/// Its options for this kernel's modules.
fn objtool_options() -> Vec<&'static str> {
    let file = filetests::kernel("headers/include/config/auto.conf");
    let configuration = std::fs::read_to_string(file).expect("a configuration");
    let set: BTreeSet<&str> = configuration.lines().collect();
    let is_set = |name: &str| set.contains(format!("CONFIG_{name}=y").as_str());
    let (all, first): (&[_], &[&str]) = match has_commands() {
        true => (&OBJTOOL_5_10, &["orc", "generate"]),
        false => (&OBJTOOL, &[]),
    };
    let chosen = all.iter().filter(|(name, _)| is_set(name));
    let chosen = chosen.map(|(_, option)| *option);
    let chosen = first.iter().copied().chain(chosen);
    let options: Vec<_> = chosen.chain(["--module", "--no-unreachable"]).collect();
    let makes_tables = options.contains(&"--orc") || options.contains(&"generate");
    assert!(makes_tables && options.contains(&"--rethunk"));
    options
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    // Debian's objtool of 6.12 chooses by this among those of all architectures.
    let output = command.args(arguments).env("SRCARCH", "x86").output();
    output.unwrap_or_else(|e| panic!("{}: {e}", program.display()))
}

fn said(output: &Output) -> String {
    let (out, error) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(error)
}

/// A module, the module rewritten, and a directory for files made from both.
struct Pair {
    original: PathBuf,
    rewritten: PathBuf,
    work: PathBuf,
}

impl Pair {
    fn make(module: &str, scheme: Scheme) -> Pair {
        Pair::try_make(module, scheme).expect("registers enough")
    }

    /// None where the paper's scheme has too few registers: newer compilers' `ext4`.
    fn try_make(module: &str, scheme: Scheme) -> Option<Pair> {
        let original = filetests::kernel("modules/kernel").join(format!("{module}.ko"));
        // Tests run at the same time.
        static PAIRS: AtomicUsize = AtomicUsize::new(0);
        let n = PAIRS.fetch_add(1, Ordering::Relaxed);
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("tools-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&work).expect("a directory below target");
        let bytes =
            std::fs::read(&original).unwrap_or_else(|e| panic!("{}: {e}", original.display()));
        let object = elf_loader::read(&bytes).expect("a module");
        let rewritten = svm_rewrite::rewrite(&object, Options::of(Target::Linux, scheme));
        let rewritten = match rewritten {
            Err(r) if scheme == Scheme::Paper && r[0].code == RefusalCode::NoScratch => {
                return None;
            }
            other => other.unwrap_or_else(|r| panic!("{module}: {}", r[0])),
        };
        let path = work.join("twin.ko");
        let bytes = elf_loader::write(&rewritten.object).expect("a module");
        std::fs::write(&path, bytes).expect("it can be written");
        Some(Pair {
            original,
            rewritten: path,
            work,
        })
    }

    /// objtool's messages about a module without the sections that it makes, and the
    /// module with them.
    fn objtool(&self, module: &Path, name: &str) -> (BTreeSet<String>, PathBuf) {
        let made = self.work.join(name);
        let names = MADE
            .iter()
            .flat_map(|s| [(*s).to_owned(), format!(".rela{s}")]);
        let remove = names.map(|name| format!("--remove-section={name}"));
        let mut objcopy = Command::new("objcopy");
        let status = objcopy.args(remove).arg(module).arg(&made).status();
        assert!(status.expect("objcopy runs").success());
        let file = made.to_str().expect("a path of ours");
        let mut arguments = objtool_options();
        arguments.push(file);
        let output = run(
            &filetests::kernel("headers/tools/objtool/objtool"),
            &arguments,
        );
        assert!(output.status.success(), "{}", said(&output));
        (said(&output).lines().map(without_place).collect(), made)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Remove what a failed run left.
        let _ = std::fs::remove_dir_all(&self.work);
    }
}

/// A warning without its file and without offsets, which differ.
fn without_place(line: &str) -> String {
    let text = line.split_once("objtool: ").map_or(line, |(_, text)| text);
    let words = text.split(' ').map(|w| w.split("+0x").next().unwrap_or(w));
    words.collect::<Vec<_>>().join(" ")
}

/// Unwind entries by section, as objtool prints them: offset and what holds from
/// there on.
type Entries = BTreeMap<String, BTreeMap<u64, String>>;

fn entries(module: &Path) -> Entries {
    let file = module.to_str().expect("a path of ours");
    let command: &[&str] = match has_commands() {
        true => &["orc", "dump", file],
        false => &["--dump=orc", file],
    };
    let output = run(&filetests::kernel("headers/tools/objtool/objtool"), command);
    let mut entries = Entries::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (place, entry) = line.split_once(':').expect("place: entry");
        let (section, offset) = place.rsplit_once('+').expect("section+offset");
        let offset = u64::from_str_radix(offset, 16).expect("a hexadecimal offset");
        let section = entries.entry(section.to_owned()).or_default();
        section.insert(offset, entry.trim().to_owned());
    }
    entries
}

fn holds(entries: &BTreeMap<u64, String>, at: u64) -> Option<&str> {
    entries
        .range(..=at)
        .next_back()
        .map(|(_, entry)| entry.as_str())
}

/// Compares the tables wherever objtool has an entry: it does not follow unreachable
/// code. Gives the number of places at which either changes.
fn compare(module: &str, ours: &Entries, theirs: &Entries) -> usize {
    let mut compared = 0;
    for (section, known) in theirs {
        let own = &ours[section];
        let places: BTreeSet<u64> = known.keys().chain(own.keys()).copied().collect();
        for at in places {
            match holds(known, at) {
                None => {}
                // Linux 6.1, and from 6.4 on.
                Some(entry) if entry.starts_with("sp:(und)") => {}
                Some(entry) if entry.starts_with("type:(und)") => {}
                Some(entry) => {
                    assert_eq!(holds(own, at), Some(entry), "{module}: {section}+{at:#x}");
                    compared += 1;
                }
            }
        }
    }
    compared
}

fn objtool_agrees(scheme: Scheme) {
    let mut agreed = 0;
    for module in sample() {
        let Some(pair) = Pair::try_make(module, scheme) else {
            continue;
        };
        // Kernels had modules of assembly that objtool was not asked about.
        if entries(&pair.original).is_empty() {
            continue;
        }
        let (before, _) = pair.objtool(&pair.original, "original.ko");
        let (after, made) = pair.objtool(&pair.rewritten, "made.ko");
        let new: Vec<&String> = after.difference(&before).collect();
        assert!(new.is_empty(), "{module}: objtool finds {new:#?}");
        let compared = compare(module, &entries(&pair.rewritten), &entries(&made));
        println!("{module}: {compared} unwind entries as objtool makes them");
        assert!(compared > 100, "{module}: {compared} entries");
        agreed += 1;
    }
    assert!(agreed + 5 >= SAMPLE.len(), "{agreed} modules");
}

#[test]
fn objtool_finds_nothing_new_and_makes_the_same_unwind_tables() {
    objtool_agrees(Scheme::Stlb);
}

#[test]
fn objtool_finds_nothing_new_and_makes_the_same_unwind_tables_for_the_papers_scheme() {
    objtool_agrees(Scheme::Paper);
}

/// `readelf` complains about malformed parts; `ld -r` reads every section, symbol and
/// relocation.
#[test]
fn binutils_take_rewritten_modules() {
    for module in sample() {
        let pair = Pair::make(module, Scheme::Stlb);
        let file = pair.rewritten.to_str().expect("a path of ours");
        let output = run(Path::new("readelf"), &["-aW", file]);
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && complaints.is_empty(),
            "{module}: {complaints}"
        );
        let linked = pair.work.join("linked.ko");
        let linked = linked.to_str().expect("a path of ours");
        let output = run(Path::new("ld"), &["-r", "-o", linked, file]);
        assert!(
            output.status.success() && said(&output).is_empty(),
            "{module}: {}",
            said(&output)
        );
        // The linked module still has what `modinfo` and the kernel read.
        let bytes = std::fs::read(linked).expect("ld made it");
        let object = elf_loader::read(&bytes).expect("a module");
        let has = |section| object.section_named(section).is_some();
        assert!(
            has(".modinfo") && has(".gnu.linkonce.this_module"),
            "{module}"
        );
        // Debian's 7.3 has no versions of symbols.
        let bytes = std::fs::read(&pair.original).expect("a module");
        let original = elf_loader::read(&bytes).expect("a module");
        let had = original.section_named("__versions").is_some();
        assert_eq!(has("__versions"), had, "{module}: versions of symbols");
    }
}

/// Not every user's path has it.
fn modinfo() -> PathBuf {
    let places = ["/usr/sbin/modinfo", "/sbin/modinfo", "/usr/bin/modinfo"];
    let found = places.iter().map(PathBuf::from).find(|p| p.exists());
    found.expect("modinfo of kmod, which `make setup` installs")
}

/// `modinfo` prints the same for the rewritten module as for the original, except for
/// the signature, which is gone.
#[test]
fn modinfo_tells_the_same() {
    for module in sample() {
        let pair = Pair::make(module, Scheme::Stlb);
        let all = run(
            &modinfo(),
            &[pair.rewritten.to_str().expect("a path of ours")],
        );
        assert!(!said(&all).contains("signature:"), "{module}");
        let told = |path: &Path| -> Vec<String> {
            let file = path.to_str().expect("a path of ours");
            let output = run(&modinfo(), &[file]);
            assert!(output.status.success(), "{module}: {}", said(&output));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            // A signature's bytes are over several lines.
            let signature = |line: &str| line.starts_with("sig") || line.starts_with('\t');
            let own = |line: &&str| !line.starts_with("filename:") && !signature(line);
            let lines = text.lines().filter(own);
            lines.map(str::to_owned).collect()
        };
        let (before, after) = (told(&pair.original), told(&pair.rewritten));
        assert!(before.len() > 3, "{module}: {before:?}");
        assert_eq!(before, after, "{module}");
    }
}
