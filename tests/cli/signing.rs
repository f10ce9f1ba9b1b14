//! Marks and signatures: what a module says of its making, and who vouches for it.
//! Judges are `modinfo` and `openssl`.

use std::process::{Command, Output};

use crate::bad_input::gzip;
use crate::sandbox::{Answer, Sandbox};
use crate::stock::e1000;

fn tool(sandbox: &Sandbox, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    // Administrators' programs are not in everybody's path.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let output = command
        .args(arguments)
        .current_dir(sandbox.path(""))
        .output();
    output.unwrap_or_else(|error| panic!("{program}: {error} (make setup)"))
}

fn good(sandbox: &Sandbox, program: &str, arguments: &[&str]) -> String {
    let output = tool(sandbox, program, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The stock module, signed by its distribution.
fn stock() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::copy(e1000(), sandbox.path("e1000.ko")).expect("a copy");
    sandbox
}

const LINUX: [&str; 3] = ["rewrite", "--target", "linux"];

fn rewrite(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    sandbox.run(&[&LINUX, arguments].concat())
}

/// A key of RSA with 2048 bits and its certificate, as files of each form.
fn with_keys(sandbox: &Sandbox) {
    let make = [
        "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "36500", "-subj",
        "/O=twin/CN=test", "-keyout", "key.pem", "-out", "cert.pem",
    ];
    good(sandbox, "openssl", &make);
    good(
        sandbox,
        "openssl",
        &[
            "x509", "-in", "cert.pem", "-outform", "DER", "-out", "cert.der",
        ],
    );
    good(
        sandbox,
        "openssl",
        &[
            "rsa", "-in", "key.pem", "-outform", "DER", "-out", "key.der",
        ],
    );
    good(
        sandbox,
        "openssl",
        &["rsa", "-in", "key.pem", "-traditional", "-out", "rsa.pem"],
    );
    let both = [sandbox.read("key.pem"), sandbox.read("cert.pem")].concat();
    sandbox.write("both.pem", both);
}

#[test]
fn modinfo_shows_what_made_a_module() {
    let sandbox = stock();
    rewrite(&sandbox, &["--scheme", "paper", "e1000.ko", "-o", "out.ko"]);
    let sum = good(&sandbox, "sha256sum", &["e1000.ko"]);
    let sum = sum.split(' ').next().expect("a sum");
    let shown = good(&sandbox, "modinfo", &["-F", "twin", "./out.ko"]);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("{version} scheme=paper target=linux original=sha256:{sum}\n");
    assert_eq!(shown, expected);
    // The module's own entries stay.
    let own = |name: &str| {
        let all = good(&sandbox, "modinfo", &[name]);
        let kept = all.lines().filter(|line| {
            let key = line.split(':').next().unwrap_or_default();
            [
                "description", "license", "depends", "vermagic", "parm", "alias",
            ]
            .contains(&key)
        });
        kept.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(own("./e1000.ko").len() > 20);
    assert_eq!(own("./out.ko"), own("./e1000.ko"));
}

#[test]
fn an_object_for_a_hypervisor_has_its_mark_too() {
    let sandbox = Sandbox::with_driver();
    sandbox.run(&["rewrite", "driver.o", "-o", "out.o"]).ok();
    let sum = good(&sandbox, "sha256sum", &["driver.o"]);
    let shown = good(&sandbox, "readelf", &["-p", ".twin.origin", "out.o"]);
    let sum = sum.split(' ').next().expect("a sum");
    let version = env!("CARGO_PKG_VERSION");
    let mark = format!("twin={version} scheme=stlb target=hypervisor original=sha256:{sum}");
    assert!(shown.contains(&mark), "{shown}");
    // It is not loaded.
    let sections = good(&sandbox, "readelf", &["-SW", "out.o"]);
    let line = sections
        .lines()
        .find(|line| line.contains(".twin.origin"))
        .expect("a section");
    assert!(!line.contains(" A "), "{line}");
}

#[test]
fn made_from_this_file_and_from_no_other() {
    let sandbox = stock();
    sandbox.write("e1000.ko.gz", gzip(&sandbox.read("e1000.ko")));
    rewrite(&sandbox, &["e1000.ko", "-o", "plain.ko"]);
    rewrite(&sandbox, &["e1000.ko.gz", "-o", "packed.ko"]);
    assert!(sandbox.read("plain.ko") == sandbox.read("packed.ko"));
    let mut other = sandbox.read("e1000.ko");
    // A byte of the signature, which no reader of objects looks at.
    let at = other.len() - 100;
    other[at] ^= 1;
    sandbox.write("other.ko", other);
    let verify = [
        "verify", "--target", "linux", "plain.ko", "--check-original",
    ];
    for original in ["e1000.ko", "e1000.ko.gz"] {
        let outcome = sandbox.run(&[&verify[..], &[original]].concat()).ok();
        let made = format!("; made from {original}\n");
        assert!(outcome.text().ends_with(&made), "{}", outcome.text());
    }
    let outcome = sandbox.run(&[&verify[..], &["other.ko"]].concat());
    assert_eq!((outcome.status, outcome.text()), (1, ""));
    let parts = [
        "twin: plain.ko: it was made from a file with sha256:",
        "other.ko has",
        "[original]",
    ];
    assert!(
        parts.iter().all(|part| outcome.stderr.contains(part)),
        "{}",
        outcome.stderr
    );
    let json = |original: &str| {
        let outcome = sandbox.run(&[&verify[..], &[original, "--format", "json"]].concat());
        outcome.json()[0].clone()
    };
    assert_eq!(json("other.ko")["code"], "original");
    assert_eq!(json("other.ko")["verdict"], "refused");
    let sum = good(&sandbox, "sha256sum", &["e1000.ko"]);
    let sum = sum.split(' ').next().expect("a sum");
    assert_eq!(json("e1000.ko")["original"], format!("sha256:{sum}"));
    assert_eq!(
        sandbox.run(&[&verify[..], &["missing.ko"]].concat()).status,
        2
    );
}

#[test]
fn a_module_without_a_mark_was_made_from_nothing_known() {
    let sandbox = Sandbox::with_driver();
    sandbox.run(&["rewrite", "driver.o", "-o", "out.o"]).ok();
    good(
        &sandbox,
        "objcopy",
        &["-R", ".twin.origin", "out.o", "bare.o"],
    );
    sandbox.run(&["verify", "bare.o"]).ok();
    let outcome = sandbox.run(&["verify", "bare.o", "--check-original", "driver.o"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("no mark"), "{}", outcome.stderr);
}

#[test]
fn a_module_that_was_signed_says_that_it_no_longer_is() {
    let sandbox = stock();
    let one = rewrite(&sandbox, &["e1000.ko", "-o", "out.ko"]);
    let why = "a signature holds for the original's bytes only; --sign KEY CERT signs anew\n";
    let says = format!("twin: e1000.ko was signed, and the result is not: {why}");
    assert_eq!((one.status, one.stderr), (0, says));
    std::fs::copy(sandbox.path("e1000.ko"), sandbox.path("copy.ko")).expect("a copy");
    let both = rewrite(
        &sandbox,
        &["e1000.ko", "copy.ko", "-d", "out", "--report", "r.json"],
    );
    let says = format!("twin: 2 modules were signed, and the results are not: {why}");
    assert_eq!((both.status, both.stderr), (0, says));
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    for file in report["files"].as_array().expect("a list") {
        assert_eq!(
            (&file["was_signed"], &file["signed"]),
            (&true.into(), &false.into())
        );
    }
    // An object for a hypervisor is not loaded by a kernel; one that never was signed is
    // as it was.
    sandbox.run(&["rewrite", "e1000.ko", "-o", "out.o"]).ok();
    good(&sandbox, "objcopy", &["e1000.ko", "unsigned.ko"]);
    rewrite(&sandbox, &["unsigned.ko", "-o", "out.ko"]).ok();
}

/// The last parts of a signed module: its body, the PKCS#7 message, what follows.
fn taken_apart(module: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let magic = b"~Module signature appended~\n";
    let end = module.len() - magic.len();
    assert_eq!(&module[end..], magic);
    let size = u32::from_be_bytes(module[end - 4..end].try_into().expect("four bytes"));
    let (rest, information) = module[..end].split_at(end - 12);
    let (body, message) = rest.split_at(rest.len() - size as usize);
    (body, message, information)
}

#[test]
fn openssl_verifies_a_signature_and_makes_the_same() {
    let sandbox = stock();
    with_keys(&sandbox);
    rewrite(&sandbox, &["e1000.ko", "-o", "unsigned.ko"]);
    let sign = [
        "--sign", "key.pem", "cert.pem", "e1000.ko", "-o", "out.ko", "--report", "r.json",
    ];
    rewrite(&sandbox, &sign).ok();
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    assert_eq!(report["files"][0]["signed"], true);
    let signed = sandbox.read("out.ko");
    let (body, message, information) = taken_apart(&signed);
    assert!(body == sandbox.read("unsigned.ko"));
    // struct module_signature: PKEY_ID_PKCS7, and nothing else but the size.
    assert_eq!(information[..8], [0, 0, 2, 0, 0, 0, 0, 0]);
    sandbox.write("message", message);
    sandbox.write("body", body);
    let verify = [
        "cms", "-verify", "-binary", "-inform", "DER", "-in", "message", "-certfile", "cert.pem",
        "-CAfile", "cert.pem", "-purpose", "any", "-out", "/dev/null", "-content",
    ];
    good(&sandbox, "openssl", &[&verify[..], &["body"]].concat());
    // One byte of difference, and it does not verify.
    let mut changed = body.to_vec();
    changed[1000] ^= 1;
    sandbox.write("changed", changed);
    assert!(
        !tool(&sandbox, "openssl", &[&verify[..], &["changed"]].concat())
            .status
            .success()
    );
    let make = [
        "cms", "-sign", "-binary", "-noattr", "-nocerts", "-md", "sha256", "-outform", "DER",
        "-signer", "cert.pem", "-inkey", "key.pem", "-in", "body", "-out", "theirs",
    ];
    good(&sandbox, "openssl", &make);
    assert!(sandbox.read("theirs") == message);
    let shown = good(&sandbox, "modinfo", &["./out.ko"]);
    for part in ["PKCS#7", "signer:         test", "sig_hashalgo:   sha256"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The verifier and everybody else read it as before.
    sandbox.run(&["verify", "--target", "linux", "out.ko"]).ok();
}

#[test]
fn keys_of_every_form_sign_the_same_bytes_at_any_number_of_jobs() {
    let sandbox = stock();
    with_keys(&sandbox);
    std::fs::copy(sandbox.path("e1000.ko"), sandbox.path("copy.ko")).expect("a copy");
    let sign = |key: &str, certificate: &str, jobs: &str| {
        let options = [
            "--sign", key, certificate, "-j", jobs, "-d", "out", "e1000.ko", "copy.ko",
        ];
        rewrite(&sandbox, &options).ok();
        (sandbox.read("out/e1000.ko"), sandbox.read("out/copy.ko"))
    };
    let first = sign("key.pem", "cert.pem", "1");
    assert!(first.0 == first.1);
    assert!(first == sign("key.der", "cert.der", "2"));
    assert!(first == sign("rsa.pem", "cert.der", "5"));
    assert!(first == sign("both.pem", "both.pem", "2"));
}

#[test]
fn keys_that_are_refused() {
    let sandbox = stock();
    with_keys(&sandbox);
    let other = ["genpkey", "-algorithm", "RSA", "-out", "other.pem"];
    good(&sandbox, "openssl", &other);
    let elliptic = [
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-out",
        "ec.pem",
    ];
    good(&sandbox, "openssl", &elliptic);
    let older = [
        "ecparam", "-name", "prime256v1", "-genkey", "-out", "sec1.pem",
    ];
    good(&sandbox, "openssl", &older);
    let locked = [
        "pkey", "-in", "key.pem", "-aes256", "-passout", "pass:x", "-out", "locked.pem",
    ];
    good(&sandbox, "openssl", &locked);
    // An exponent of one of the primes: RFC 8017 A.1.2. It is not compared when a key is read.
    let mut damaged = sandbox.read("key.der");
    let exponent = damaged.len() * 3 / 4;
    damaged[exponent] ^= 1;
    sandbox.write("damaged.der", damaged);
    let refused = |target: &str, key: &str, certificate: &str| {
        let args = [
            "rewrite", "--target", target, "--sign", key, certificate, "e1000.ko", "-o", "out.ko",
        ];
        let outcome = sandbox.run(&args);
        assert_eq!(
            (outcome.status, outcome.text()),
            (2, ""),
            "{}",
            outcome.stderr
        );
        assert!(!sandbox.path("out.ko").exists());
        outcome.stderr
    };
    for (key, certificate, says) in [
        (
            "other.pem",
            "cert.pem",
            "other.pem: cert.pem is not the certificate of this key",
        ),
        ("ec.pem", "cert.pem", "it has to be RSA"),
        ("sec1.pem", "cert.pem", "it has to be RSA"),
        ("damaged.der", "cert.pem", "this key is damaged"),
        ("locked.pem", "cert.pem", "openssl pkey"),
        ("cert.pem", "cert.pem", "there is no private key"),
        ("key.pem", "key.pem", "there is no certificate"),
        ("key.pem", "e1000.ko", "it is no X.509 certificate"),
        ("key.pem", "missing", "missing: "),
    ] {
        let said = refused("linux", key, certificate);
        assert!(said.contains(says), "{key} {certificate}: {said}");
    }
    assert!(refused("hypervisor", "key.pem", "cert.pem").contains("give --target linux"));
}

#[test]
fn only_modules_are_signed() {
    let sandbox = Sandbox::with_driver();
    with_keys(&sandbox);
    sandbox.write("driver.s", crate::sandbox::DRIVER);
    good(&sandbox, "ar", &["rcs", "lib.a", "driver.o"]);
    for (input, output) in [("lib.a", "out.a"), ("driver.s", "out.s")] {
        let outcome = rewrite(
            &sandbox,
            &["--sign", "key.pem", "cert.pem", input, "-o", output],
        );
        assert_eq!(outcome.status, 1, "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("--sign is for modules"),
            "{}",
            outcome.stderr
        );
        assert!(!sandbox.path(output).exists());
    }
}
