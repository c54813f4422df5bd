//! What the fuzz targets share: mutators that keep the outer form of an input, so that what is inside is reached.

pub mod container;
pub mod dice;
pub mod json;

/// Puts a mutated input into libFuzzer's buffer, and returns its length; `None` where there is none or no room for it.
pub fn put(mutated: Option<Vec<u8>>, data: &mut [u8], max_size: usize) -> Option<usize> {
    let mutated = mutated?;
    let size = mutated.len();
    let room = data.get_mut(..size).filter(|_| size <= max_size)?;
    room.copy_from_slice(&mutated);
    Some(size)
}
