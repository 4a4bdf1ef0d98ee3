//! The secret that says who is asking.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::Error;

/// Longer ones are no tokens but files given by mistake.
const LONGEST: usize = 512;

/// A bearer token. It has no `Debug`, `Display` or `Serialize`, and is wiped when it is dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Token(String);

impl Token {
    /// The token in this text, without white space around it.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Token);
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads the token from a file; `-` is standard input.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        if path == Path::new("-") {
            return Self::read(io::stdin().lock()).map_err(failed)?;
        }
        Self::read(File::open(path).map_err(failed)?).map_err(failed)?
    }

    fn read(source: impl Read) -> io::Result<Result<Self, Error>> {
        let mut text = Zeroizing::new(Vec::with_capacity(2 * LONGEST));
        source.take(2 * LONGEST as u64).read_to_end(&mut text)?;
        Ok(std::str::from_utf8(&text).map_err(|_| Error::Token).and_then(Self::new))
    }

    /// The secret itself, to be written where only its owner can read it.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_of_visible_characters() {
        assert_eq!(Token::new(" abc-123\n").unwrap().secret(), "abc-123");
        for bad in ["", " \n", "two words", "new\nline", "ümlaut", &"x".repeat(LONGEST + 1)] {
            assert!(matches!(Token::new(bad), Err(Error::Token)), "{bad:?}");
        }
    }

    #[test]
    fn a_token_is_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "secret\n").unwrap();
        assert_eq!(Token::load(&path).unwrap().secret(), "secret");
        std::fs::write(&path, [b'x'; 5000]).unwrap();
        let error = Token::load(&path).err().unwrap().to_string();
        assert!(!error.contains("xxx"), "{error}");
        assert!(matches!(Token::load(&folder.path().join("none")), Err(Error::File { .. })));
    }
}
