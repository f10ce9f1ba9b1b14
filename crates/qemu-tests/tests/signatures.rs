//! `twin rewrite --sign` before a judge: the stock kernel with `module.sig_enforce=1`.
//!
//! The kernel takes signatures by keys that its firmware trusts: certificates in the UEFI
//! variable `db` are loaded into its platform keyring (security/integrity/platform_certs),
//! which Debian's kernel consults for modules. So QEMU runs UEFI firmware, a first boot
//! enrols a new certificate, and a second one loads modules.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use qemu_tests::machine::{Cable, Guest, MEMORY};
use qemu_tests::modules;
use qemu_tests::ramdisk::Ramdisk;
use qemu_tests::report::GuestReport;

const COMMON: &[u8] = include_bytes!("../guest/common.sh");
const SCRIPT: &[u8] = include_bytes!("../guest/signatures.sh");

/// The firmware and its variables without any key, of Debian's package `ovmf`. Debian 13's
/// plain `OVMF_CODE_4M.fd` keeps no authenticated variables (its README.Debian).
const FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
const VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// How long a guest may take on a slow machine; usually a quarter of a minute.
const LIMIT: Duration = Duration::from_secs(900);

fn good<T>(result: Result<T, qemu_tests::Error>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Where this test's files are.
struct Place {
    directory: PathBuf,
    twin: PathBuf,
}

impl Place {
    fn new() -> Place {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let directory = root.join("target/qemu/signatures");
        std::fs::create_dir_all(&directory).expect("a directory");
        // The test's program is in `deps` of the directory that `twin` is in.
        let own = std::env::current_exe().expect("a program");
        let programs = own.ancestors().nth(2).expect("a directory");
        let profile = match programs.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let built = Command::new(env!("CARGO"))
            .args([
                "build", "--quiet", "--workspace", "--bin", "twin", "--bin", "twin-run",
            ])
            .args(["--profile", profile, "--target-dir"])
            .arg(programs.parent().expect("a directory"))
            .current_dir(root)
            .status();
        assert!(built.expect("cargo runs").success(), "twin cannot be built");
        let twin = programs.join("twin");
        Place { directory, twin }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn run(&self, program: &Path, arguments: &[&str]) {
        let mut command = Command::new(program);
        let output = command
            .args(arguments)
            .current_dir(&self.directory)
            .output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", program.display());
    }

    /// A key and its certificate, `NAME.pem` and `NAME.der`.
    fn key(&self, name: &str) {
        let (key, certificate) = (format!("{name}.pem"), format!("{name}.der"));
        let subject = format!("/CN=twin {name}");
        let make = [
            "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "36500", "-subj",
            &subject, "-outform", "DER", "-keyout", &key, "-out", &certificate,
        ];
        self.run(Path::new("openssl"), &make);
    }

    /// The stock e1000, rewritten and signed with a key.
    fn signed(&self, key: Option<&str>) -> Vec<u8> {
        let names = key.map(|key| (format!("{key}.pem"), format!("{key}.der")));
        let mut arguments = vec!["rewrite", "--target", "linux", "e1000.ko", "-o", "made.ko"];
        if let Some((key, certificate)) = &names {
            arguments.extend(["--sign", key, certificate]);
        }
        self.run(&self.twin, &arguments);
        std::fs::read(self.path("made.ko")).expect("it was made")
    }

    /// Boots with the firmware, whose variables are kept in a file.
    fn boot(&self, name: &str, ramdisk: Vec<u8>, options: &str) -> GuestReport {
        let variables = self.path("variables.fd");
        let guest = Guest {
            name,
            card: "e1000",
            buses: &[],
            cable: Cable::Host,
            processor: "qemu64",
            processors: 1,
            memory: MEMORY,
            ramdisk,
            options: options.to_owned(),
            limit: LIMIT,
        };
        let flash = |more: String| ["-drive".to_owned(), format!("if=pflash,format=raw,{more}")];
        let firmware = flash(format!("readonly=on,file={FIRMWARE}"));
        let variables = flash(format!("file={}", variables.display()));
        // That firmware keeps its variables by system management mode, which this machine has.
        let machine = [
            "-machine",
            "q35,smm=on",
            "-global",
            "driver=cfi.pflash01,property=secure,value=on",
        ];
        let machine = machine.map(str::to_owned);
        let arguments = [&machine[..], &firmware, &variables].concat();
        let outcome = good(guest.run_with(&arguments));
        good(GuestReport::read(&outcome))
    }
}

/// Contents of the variable `db`: a list of one certificate (`EFI_SIGNATURE_LIST`,
/// UEFI 32.4.1) behind the header of a write with a time (`EFI_VARIABLE_AUTHENTICATION_2`,
/// UEFI 8.2.2). Firmware that trusts no key yet wants no signature in it. First the
/// variable's attributes, as efivarfs has them.
fn enrolment(certificate: &[u8]) -> Vec<u8> {
    /// NON_VOLATILE, BOOTSERVICE_ACCESS, RUNTIME_ACCESS, TIME_BASED_AUTHENTICATED_WRITE.
    const ATTRIBUTES: u32 = 0x27;
    /// EFI_CERT_TYPE_PKCS7_GUID, 4aafd29d-68df-49ee-8aa9-347d375665a7.
    const PKCS7: [u8; 16] = 0x9dd2af4a_df68_ee49_8aa9_347d375665a7_u128.to_be_bytes();
    /// EFI_CERT_X509_GUID, a5c059a1-94e4-4aa7-87b5-ab155c2bf072.
    const X509: [u8; 16] = 0xa159c0a5_e494_a74a_87b5_ab155c2bf072_u128.to_be_bytes();
    const OWNER: [u8; 16] = [0; 16];
    let size = (OWNER.len() + certificate.len()) as u32;
    let word = u32::to_le_bytes;
    let short = u16::to_le_bytes;
    [
        &word(ATTRIBUTES)[..],
        // EFI_TIME: the first of January 2026.
        &short(2026),
        &[1, 1],
        &[0; 12],
        // WIN_CERTIFICATE_UEFI_GUID without contents: size, revision, type.
        &word(24),
        &short(0x200),
        &short(0xef1),
        &PKCS7,
        // Type, size of the list, of its header (none) and of each entry.
        &X509,
        &word(28 + size),
        &word(0),
        &word(size),
        &OWNER,
        certificate,
    ]
    .concat()
}

#[test]
fn a_kernel_that_enforces_signatures_loads_what_was_signed_and_nothing_else() {
    let place = Place::new();
    let stock = good(modules::stock("drivers/net/ethernet/intel/e1000/e1000.ko"));
    std::fs::write(place.path("e1000.ko"), stock).expect("it can be written");
    std::fs::copy(VARIABLES, place.path("variables.fd"))
        .unwrap_or_else(|e| panic!("{VARIABLES}: {e} (scripts/setup.sh installs ovmf)"));
    place.key("trusted");
    place.key("foreign");
    let certificate = std::fs::read(place.path("trusted.der")).expect("it was made");
    let mut disk = good(Ramdisk::system());
    disk.file("init", SCRIPT);
    disk.file("common.sh", COMMON);
    disk.file("enrol", &enrolment(&certificate));
    let signed = place.signed(Some("trusted"));
    let mut changed = signed.clone();
    changed[5000] ^= 1;
    disk.file("modules/changed.ko", &changed);
    disk.file("modules/signed.ko", &signed);
    disk.file("modules/foreign.ko", &place.signed(Some("foreign")));
    disk.file("modules/unsigned.ko", &place.signed(None));
    disk.file(
        "modules/efivarfs.ko",
        &good(modules::stock("fs/efivarfs/efivarfs.ko")),
    );
    let disk = disk.finish();

    let report = place.boot("signatures-enrol", disk.clone(), "twin.enrol=yes");
    report.assert_good(&["enrol"]);
    let report = place.boot("signatures", disk, "module.sig_enforce=1");
    report.assert_good(&[
        "enforced", "refused-unsigned", "refused-changed", "refused-foreign", "signed",
        "signed-unload",
    ]);
    // Each for its own reason: the signature of a changed module is by a key that is known,
    // so that nothing but the changed byte is left.
    let log = report.text("log");
    let said = |module: &str| -> String {
        let (_, after) = log
            .split_once(&format!("twin-test: {module}"))
            .expect(module);
        after
            .split("twin-test: ")
            .next()
            .unwrap_or(after)
            .to_owned()
    };
    assert!(
        log.contains("integrity: Loaded X.509 cert 'twin trusted:"),
        "{log}"
    );
    assert!(
        said("unsigned").contains("Loading of unsigned module is rejected"),
        "{log}"
    );
    assert!(
        said("foreign").contains("Loading of module with unavailable key is rejected"),
        "{log}"
    );
    assert!(!said("changed").contains("Loading of"), "{log}");
    assert!(!said("signed").contains("Loading of"), "{log}");
}
