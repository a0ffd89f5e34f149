//! The inflated data of a PNG, a few rows at a time, in the window that copies reach back to.

use std::io::BufRead;

use fdeflate::Decompressor;

use super::Broken;
use super::idat::Idat;

/// The bytes that copies reach back (RFC 1951, section 2).
const WINDOW_BYTES: usize = 32 << 10;
/// The bytes that are inflated at once beyond those asked for: they stay in the second cache.
const AHEAD_BYTES: usize = 64 << 10;

/// The data of a PNG, inflated as it is asked for.
pub(super) struct Inflated<R> {
    idat: Idat<R>,
    inflate: Box<Decompressor>,
    window: Vec<u8>,
    /// The bytes of the window that are inflated, and those of them that were taken.
    filled: usize,
    taken: usize,
}

impl<R: BufRead> Inflated<R> {
    /// Opens the data of `file`, of which at most `most` bytes are taken at once.
    pub(super) fn open(file: R, most: usize) -> Result<Self, Broken> {
        let idat = Idat::open(file)?;
        // As the png crate does: chunks have checksums already.
        let mut inflate = Box::new(Decompressor::new());
        inflate.ignore_adler32();

        let window = vec![0; WINDOW_BYTES + 2 * (most + AHEAD_BYTES)];
        Ok(Self { idat, inflate, window, filled: 0, taken: 0 })
    }

    /// Takes the next `bytes`. Fails if the data ends before them.
    pub(super) fn take(&mut self, bytes: usize) -> Result<&[u8], Broken> {
        while self.filled - self.taken < bytes {
            self.make_room(bytes);
            let most = (self.taken + bytes + AHEAD_BYTES).min(self.window.len());
            let data = self.idat.data()?;
            let (used, made) = self
                .inflate
                .read(data, &mut self.window[..most], self.filled, false)
                .map_err(|error| Broken::from(format!("the data cannot be inflated: {error:?}")))?;

            if used == 0 && made == 0 {
                return Err("the data ends early".into());
            }
            self.idat.consume(used)?;
            self.filled += made;
        }

        let taken = &self.window[self.taken..self.taken + bytes];
        self.taken += bytes;
        Ok(taken)
    }

    /// Reads the rest of the data, which shows nothing, to its last checksum.
    pub(super) fn finish(mut self) -> Result<(), Broken> {
        loop {
            let rest = self.idat.data()?.len();
            if rest == 0 {
                return Ok(());
            }
            self.idat.consume(rest)?;
        }
    }

    /// Moves what is still needed to the start, if `bytes` and more would not fit behind it.
    fn make_room(&mut self, bytes: usize) {
        if self.taken + bytes + AHEAD_BYTES <= self.window.len() {
            return;
        }
        let needed = self.taken.min(self.filled.saturating_sub(WINDOW_BYTES));
        self.window.copy_within(needed..self.filled, 0);
        self.filled -= needed;
        self.taken -= needed;
    }
}
