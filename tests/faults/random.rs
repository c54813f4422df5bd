//! Numbers that look random and are the same for the same seed.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to `bound`, which is not reached.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Another sequence, told by this one.
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    /// An id as clients make them: positive, and not to be met twice.
    pub fn snapshot_id(&mut self) -> i64 {
        (self.draw() >> 1) as i64
    }
}
