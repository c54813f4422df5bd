//! Blocks of Avro files, inflated no further than they may be.

use std::borrow::Cow;
use std::io::Read;

use apache_avro::Codec;
use flate2::read::DeflateDecoder;

use super::{Result, Unreadable};

/// Behind a block that Snappy packed stands the checksum of what is in it.
const SNAPPY_CHECKSUM_BYTES: usize = 4;

/// What a block holds; it is given up as soon as that is more than `max_bytes`.
pub fn inflate(codec: Codec, block: &[u8], max_bytes: usize) -> Result<Cow<'_, [u8]>> {
    match codec {
        Codec::Null if block.len() > max_bytes => Err(Unreadable::TooLong),
        Codec::Null => Ok(Cow::Borrowed(block)),
        Codec::Deflate(_) => read(DeflateDecoder::new(block), max_bytes),
        Codec::Snappy => unsnap(codec, block, max_bytes),
        Codec::Zstandard(_) => read(zstd::Decoder::new(block).map_err(|_| Unreadable::Broken)?, max_bytes),
    }
}

fn read(inflated: impl Read, max_bytes: usize) -> Result<Cow<'static, [u8]>> {
    let mut read = Vec::new();
    // One byte more than there may be tells that there are more.
    inflated.take(max_bytes as u64 + 1).read_to_end(&mut read).map_err(|_| Unreadable::Broken)?;
    if read.len() > max_bytes { Err(Unreadable::TooLong) } else { Ok(Cow::Owned(read)) }
}

/// Snappy tells beforehand how much there is, and holds no more.
fn unsnap(codec: Codec, block: &[u8], max_bytes: usize) -> Result<Cow<'static, [u8]>> {
    let packed = block.split_last_chunk::<SNAPPY_CHECKSUM_BYTES>().ok_or(Unreadable::Broken)?.0;
    let told = snap::raw::decompress_len(packed).map_err(|_| Unreadable::Broken)?;
    if told > max_bytes {
        return Err(Unreadable::TooLong);
    }
    let mut inflated = block.to_vec();
    codec.decompress(&mut inflated)?;
    Ok(Cow::Owned(inflated))
}

#[cfg(test)]
mod tests {
    use apache_avro::{DeflateSettings, ZstandardSettings};

    use super::*;

    fn codecs() -> [Codec; 4] {
        let (deflate, zstandard) = (DeflateSettings::default(), ZstandardSettings::default());
        [Codec::Null, Codec::Deflate(deflate), Codec::Snappy, Codec::Zstandard(zstandard)]
    }

    #[test]
    fn a_block_is_inflated_up_to_its_bound_and_not_one_byte_further() {
        let content = vec![7; 100_000];
        for codec in codecs() {
            let mut block = content.clone();
            codec.compress(&mut block).unwrap();
            assert_eq!(inflate(codec, &block, content.len()).unwrap(), content, "{codec:?}");
            let beyond = inflate(codec, &block, content.len() - 1);
            assert!(matches!(beyond, Err(Unreadable::TooLong)), "{codec:?}");
        }
    }

    #[test]
    fn a_block_that_is_cut_is_no_block() {
        // One by deflate ends early, and misses records.
        for codec in &codecs()[2..] {
            let mut block = b"some words, and some words".to_vec();
            codec.compress(&mut block).unwrap();
            for length in [3, block.len() - 2] {
                assert!(inflate(*codec, &block[..length], 1_000).is_err(), "{codec:?} cut to {length}");
            }
        }
    }
}
