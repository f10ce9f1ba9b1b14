//! PEM: DER in base64 between lines that say what it is (RFC 7468). A file may hold
//! several parts, as the kernel's `certs/signing_key.pem` does.

const KEYS: [&str; 2] = ["PRIVATE KEY", "RSA PRIVATE KEY"];
/// What other keys than RSA's are called in the older form; in the newer one it is in the DER.
const OTHERS: [&str; 2] = ["EC PRIVATE KEY", "DSA PRIVATE KEY"];

/// The certificate in a file, in DER. A file that is no PEM is taken as DER.
pub fn certificate(bytes: &[u8]) -> Result<Vec<u8>, String> {
    part(bytes, &["CERTIFICATE"], "certificate")
}

/// The private key in a file, in DER.
pub fn key(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let locked = text(bytes).is_some_and(|text| {
        text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
            || text.contains("\nProc-Type: 4,ENCRYPTED")
    });
    if locked {
        let why = "the key has a password; `openssl pkey -in KEY -out PLAIN` makes one without";
        return Err(why.to_owned());
    }
    let begins = |label: &&&str| has(bytes, label);
    match OTHERS.iter().find(begins) {
        Some(other) if !KEYS.iter().any(|key| has(bytes, key)) => Err(format!(
            "no key that can be used ({other}): it has to be RSA with 2048 to 4096 bits"
        )),
        _ => part(bytes, &KEYS, "private key"),
    }
}

fn has(bytes: &[u8], label: &str) -> bool {
    text(bytes).is_some_and(|text| text.contains(&format!("-----BEGIN {label}-----")))
}

fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.contains("-----BEGIN ").then_some(text)
}

fn part(bytes: &[u8], labels: &[&str], what: &str) -> Result<Vec<u8>, String> {
    let Some(text) = text(bytes) else {
        return Ok(bytes.to_vec());
    };
    let body = labels.iter().find_map(|label| {
        let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
        let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
        Some(body)
    });
    let body = body.ok_or_else(|| {
        let [first, ..] = labels else {
            unreachable!("it has a name")
        };
        format!("there is no {what} in this PEM file: no part of it is a {first}")
    })?;
    base64(body).ok_or_else(|| format!("the {what} in this PEM file is no base64"))
}

/// RFC 4648 4; blanks and line ends are skipped.
fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    let symbols = text.bytes().filter(|b| !b.is_ascii_whitespace());
    for symbol in symbols.take_while(|b| *b != b'=') {
        let digit = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6 | u32::from(digit)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        let decoded = |text| base64(text).map(|b| String::from_utf8_lossy(&b).into_owned());
        assert_eq!(decoded("Zg=="), Some("f".to_owned()));
        assert_eq!(decoded("Zm8="), Some("fo".to_owned()));
        assert_eq!(decoded("Zm9v\nYmFy"), Some("foobar".to_owned()));
        assert_eq!(decoded("Zm9*"), None);
    }

    #[test]
    fn the_part_that_is_asked_for() {
        let file = b"-----BEGIN PRIVATE KEY-----\nZm8=\n-----END PRIVATE KEY-----\n\
                     -----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n";
        assert_eq!(key(file), Ok(b"fo".to_vec()));
        assert_eq!(certificate(file), Ok(b"foo".to_vec()));
        assert!(certificate(b"-----BEGIN X-----\n").is_err());
    }
}
