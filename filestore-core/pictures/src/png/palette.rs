//! The colours of a palette (W3C PNG third edition, sections 11.2.2 and 11.3.1.1).

/// The colours for samples of eight bits.
pub(crate) struct Palette {
    /// Red, green, blue and alpha of each colour. Red is the lowest byte.
    colors: [u32; 256],
    has_alpha: bool,
}

impl Palette {
    /// Reads colours of three bytes each, and with `alpha` the alpha of the first colours. If there are more
    /// alpha values than colours, all alpha values are ignored. Samples beyond the last colour are opaque
    /// black. These are the rules of the png crate.
    pub(crate) fn new(colors: &[u8], alpha: Option<&[u8]>) -> Self {
        let colors = colors.as_chunks::<3>().0;
        let alphas = alpha.filter(|alpha| alpha.len() <= colors.len()).unwrap_or_default();
        let known = |sample: usize| {
            let [red, green, blue] = colors.get(sample).copied().unwrap_or_default();
            let alpha = alphas.get(sample).copied().unwrap_or(u8::MAX);
            u32::from_le_bytes([red, green, blue, alpha])
        };
        Self { colors: std::array::from_fn(known), has_alpha: alpha.is_some() }
    }

    /// Writes the colour of each sample to `pixels`: three bytes each, or four if the palette has alpha.
    pub(crate) fn expand(&self, samples: &[u8], pixels: &mut [u8]) {
        if self.has_alpha {
            for (pixel, sample) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                *pixel = self.color(*sample).to_le_bytes();
            }
            return;
        }

        // Four colours fill three words.
        let (fours, rest) = samples.as_chunks::<4>();
        let (words, last) = pixels.split_at_mut(12 * fours.len());
        for (words, four) in words.as_chunks_mut::<12>().0.iter_mut().zip(fours) {
            let [a, b, c, d] = four.map(|sample| self.color(sample) & 0xFF_FFFF);
            let joined = [a | b << 24, b >> 8 | c << 16, c >> 16 | d << 8];
            words.copy_from_slice(joined.map(u32::to_le_bytes).as_flattened());
        }
        for (pixel, sample) in last.as_chunks_mut::<3>().0.iter_mut().zip(rest) {
            pixel.copy_from_slice(&self.color(*sample).to_le_bytes()[..3]);
        }
    }

    fn color(&self, sample: u8) -> u32 {
        self.colors[usize::from(sample)]
    }
}
