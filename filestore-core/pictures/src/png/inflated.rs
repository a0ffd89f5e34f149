//! The inflated data of a PNG, a few rows at a time, in a window for back references.

use std::io::BufRead;

use fdeflate::Decompressor;

use super::Broken;
use super::idat::Idat;

/// The maximum distance of a back reference, in bytes (RFC 1951, section 2).
const WINDOW_BYTES: usize = 32 << 10;
/// The bytes that are inflated ahead of the request. These bytes fit into the second-level cache.
const AHEAD_BYTES: usize = 64 << 10;

/// The data of a PNG, inflated on request.
pub(super) struct Inflated<R> {
    idat: Idat<R>,
    inflate: Box<Decompressor>,
    window: Vec<u8>,
    /// The number of inflated bytes in the window, and the number of consumed bytes.
    filled: usize,
    taken: usize,
}

impl<R: BufRead> Inflated<R> {
    /// Opens the data of `file`. A single call takes at most `most` bytes.
    pub(super) fn open(file: R, most: usize) -> Result<Self, Broken> {
        let idat = Idat::open(file)?;
        // As the png crate does: chunks have checksums already.
        let mut inflate = Box::new(Decompressor::new());
        inflate.ignore_adler32();

        let window = vec![0; WINDOW_BYTES + 2 * (most + AHEAD_BYTES)];
        Ok(Self { idat, inflate, window, filled: 0, taken: 0 })
    }

    /// Returns the next `bytes` bytes. Fails if the data ends before them.
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

    /// Reads the rest of the data, which is not visible, up to its last checksum.
    pub(super) fn finish(mut self) -> Result<(), Broken> {
        loop {
            let rest = self.idat.data()?.len();
            if rest == 0 {
                return Ok(());
            }
            self.idat.consume(rest)?;
        }
    }

    /// Moves the bytes that are still needed to the start if `bytes` and more would not fit behind them.
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
