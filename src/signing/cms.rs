//! The signature itself: a detached PKCS#7 message, now called CMS (RFC 5652), that
//! names its key by issuer and serial number, without certificates and attributes, as
//! the kernel's build makes it.

use super::der::{self, tag, value};

/// 1.2.840.113549.1.7.1, RFC 5652 4.
const ID_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
/// 1.2.840.113549.1.7.2, RFC 5652 5.1.
const ID_SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// 2.16.840.1.101.3.4.2.1, RFC 5754 2.2.
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
/// 1.2.840.113549.1.1.1, RFC 3370 3.2.
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// What of a certificate is needed (RFC 5280 4.1), in DER.
pub struct Issued {
    /// `issuer`, a Name.
    issuer: Vec<u8>,
    /// `serialNumber`.
    serial: Vec<u8>,
    /// The key: an RSAPublicKey (RFC 8017 A.1.1) if it is one of RSA.
    pub public_key: Vec<u8>,
}

impl Issued {
    /// Reads a certificate; `None` if it is none.
    pub fn read(certificate: &[u8]) -> Option<Issued> {
        let (certificate, _) = der::read(certificate)?;
        let parts = certificate.of(tag::SEQUENCE)?.parts()?;
        let fields = parts.first()?.of(tag::SEQUENCE)?.parts()?;
        // `version` is left out in certificates of version 1.
        let versioned = fields.first()?.tag == tag::CONTEXT_0;
        let fields = &fields[usize::from(versioned)..];
        // serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo
        let serial = fields.first()?.of(tag::INTEGER)?;
        let issuer = fields.get(2)?.of(tag::SEQUENCE)?;
        let key = fields.get(5)?.of(tag::SEQUENCE)?.parts()?;
        let key = key.get(1)?.of(tag::BIT_STRING)?;
        Some(Issued {
            issuer: issuer.whole.to_vec(),
            serial: serial.whole.to_vec(),
            // The first byte counts unused bits: none.
            public_key: key.contents.strip_prefix(&[0])?.to_vec(),
        })
    }
}

/// The message that holds a signature.
pub fn signed_data(signer: &Issued, signature: &[u8]) -> Vec<u8> {
    let version = value(tag::INTEGER, &[&[1]]);
    let sha256 = value(tag::SEQUENCE, &[&identifier(SHA256)]);
    let rsa = value(
        tag::SEQUENCE,
        &[&identifier(RSA_ENCRYPTION), &value(tag::NULL, &[])],
    );
    let issuer = value(tag::SEQUENCE, &[&signer.issuer, &signer.serial]);
    let signature = value(tag::OCTET_STRING, &[signature]);
    let signer = value(
        tag::SEQUENCE,
        &[&version, &issuer, &sha256, &rsa, &signature],
    );
    let signed = value(
        tag::SEQUENCE,
        &[
            &version,
            &value(tag::SET, &[&sha256]),
            // Detached: the kind of contents, without the contents.
            &value(tag::SEQUENCE, &[&identifier(ID_DATA)]),
            &value(tag::SET, &[&signer]),
        ],
    );
    value(
        tag::SEQUENCE,
        &[
            &identifier(ID_SIGNED_DATA),
            &value(tag::CONTEXT_0, &[&signed]),
        ],
    )
}

fn identifier(encoded: &[u8]) -> Vec<u8> {
    value(tag::OBJECT_IDENTIFIER, &[encoded])
}
