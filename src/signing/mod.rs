//! Signatures of modules, in the kernel's own format (Documentation/admin-guide/
//! module-signing.rst; `struct module_signature` in include/linux/module_signature.h):
//!
//! ```text
//! the module | PKCS#7 (detached) | 12 bytes: kind of signature, its size | magic string
//! ```
//!
//! The signature is RSA with PKCS#1 v1.5 and SHA-256, which has no random part: the same
//! module and key give the same bytes.

mod cms;
mod der;
mod pem;

use std::path::{Path, PathBuf};

use command_line::failure::Failure;
use command_line::input::{self, Input};
use ring::rand::SystemRandom;
use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};

use crate::inputs::read_once;

use cms::Issued;

/// What a signed module ends with (`MODULE_SIG_STRING`).
const MAGIC: &[u8] = b"~Module signature appended~\n";
/// `PKEY_ID_PKCS7`: the only kind that the kernel takes.
const PKCS7: u8 = 2;

/// Whether a module ends in a signature.
pub fn is_signed(module: &[u8]) -> bool {
    module.ends_with(MAGIC)
}

/// Signs modules.
pub struct Signer {
    key: RsaKeyPair,
    certificate: Issued,
}

impl Signer {
    /// Reads a key and its certificate: PEM or DER; both may be in one PEM file.
    ///
    /// # Errors
    /// One cannot be read or is not of the kind that is taken, or they do not belong
    /// together.
    pub fn new(key: &Path, certificate: &Path) -> Result<Signer, Failure> {
        read_once([key, certificate])?;
        let issued = {
            let bytes = Input::plain(certificate)?;
            let wrong = |why: String| unusable(certificate, &why);
            let der = pem::certificate(&bytes).map_err(wrong)?;
            let wrong = || unusable(certificate, "it is no X.509 certificate (PEM or DER)");
            Issued::read(&der).ok_or_else(wrong)?
        };
        let bytes = Input::plain(key)?;
        let wrong = |why: String| unusable(key, &why);
        let der = pem::key(&bytes).map_err(wrong)?;
        let pair = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der));
        let pair = pair.map_err(|e| {
            let why = format!(
                "no key that can be used ({e}): it has to be RSA with 2048 to 4096 bits, PEM or \
                 DER, without a password"
            );
            unusable(key, &why)
        })?;
        if pair.public_key().as_ref() != issued.public_key {
            let why = format!(
                "{} is not the certificate of this key",
                input::name(certificate)
            );
            return Err(unusable(key, &why));
        }
        let signer = Signer {
            key: pair,
            certificate: issued,
        };
        // Not all of a key's parts are compared when it is read.
        match signer.signature(&[]) {
            Some(_) => Ok(signer),
            None => {
                let why = "this key is damaged: what it signs does not agree with its certificate";
                Err(unusable(key, why))
            }
        }
    }

    /// A signature of these bytes; `None` if the key's private part is wrong.
    fn signature(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.key.public().modulus_len()];
        // The random numbers only hide the key from who measures time.
        let random = SystemRandom::new();
        let signed = self
            .key
            .sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature);
        signed.ok().map(|()| signature)
    }

    /// The module with its signature.
    pub fn sign(&self, mut module: Vec<u8>) -> Vec<u8> {
        let signature = self.signature(&module);
        let signature = signature.expect("it has signed before");
        let message = cms::signed_data(&self.certificate, &signature);
        module.extend_from_slice(&message);
        // algo, hash, id_type, signer_len, key_id_len, three bytes of padding: all zero
        // but the kind, because PKCS#7 says the rest.
        module.extend_from_slice(&[0, 0, PKCS7, 0, 0, 0, 0, 0]);
        module.extend_from_slice(&(message.len() as u32).to_be_bytes());
        module.extend_from_slice(MAGIC);
        module
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("{}: {why}", input::name(&PathBuf::from(path))))
}
