//! Avro container files taken apart and put together again, so that what is in them can be mutated behind a frame that
//! holds.

use crate::dice::Dice;
use crate::json;

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: usize = 16;
const CODECS: [&str; 6] = ["null", "deflate", "snappy", "zstandard", "bzip2", ""];

/// The parts of a file, unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub header: Vec<(Vec<u8>, Vec<u8>)>,
    pub marker: Vec<u8>,
    /// How many records a block says that it has, and its bytes.
    pub blocks: Vec<(i64, Vec<u8>)>,
}

impl Container {
    /// `None` where the frame is broken. A map in several blocks, or with their sizes, is taken for broken too.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let entries = usize::try_from(long(&mut rest)?).ok()?;
        let mut header = Vec::new();
        for _ in 0..entries {
            header.push((text(&mut rest)?.to_vec(), text(&mut rest)?.to_vec()));
        }
        let (end, marker) = (long(&mut rest)?, take(&mut rest, MARKER_BYTES)?.to_vec());
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            blocks.push((long(&mut rest)?, text(&mut rest)?.to_vec()));
            rest = rest.strip_prefix(marker.as_slice())?;
        }
        (end == 0).then_some(Self { header, marker, blocks })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_long(&mut out, self.header.len() as i64);
        for (key, value) in &self.header {
            put_text(&mut out, key);
            put_text(&mut out, value);
        }
        put_long(&mut out, 0);
        out.extend(&self.marker);
        for (count, block) in &self.blocks {
            put_long(&mut out, *count);
            put_text(&mut out, block);
            out.extend(&self.marker);
        }
        out
    }

    fn value_mut(&mut self, key: &str) -> Option<&mut Vec<u8>> {
        self.header.iter_mut().find(|(own, _)| own == key.as_bytes()).map(|(_, value)| value)
    }
}

/// Changes one part of a file: its schema, its codec, or a block, whose bytes are left to `mutate_bytes`. `None` where
/// the bytes are no such file.
pub fn mutate(data: &[u8], dice: &mut Dice, mutate_bytes: impl Fn(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut container = Container::parse(data)?;
    match dice.below(10) {
        0..=2 => {
            let schema = container.value_mut("avro.schema")?;
            *schema = json::mutate(schema, dice)?;
        }
        3 => *container.value_mut("avro.codec")? = (*dice.choose(&CODECS)?).into(),
        4 => {
            let at = dice.below(container.header.len().max(1));
            mutate_bytes(&mut container.header.get_mut(at)?.1);
        }
        5 => {
            let at = dice.below(container.blocks.len().max(1));
            let count = &mut container.blocks.get_mut(at)?.0;
            *count = *dice.choose(&[0, 1, -1, i64::MAX, count.wrapping_add(1), count.wrapping_sub(1)])?;
        }
        6 => {
            let block = dice.choose(&container.blocks)?.clone();
            container.blocks.push(block);
        }
        _ => {
            let at = dice.below(container.blocks.len().max(1));
            mutate_bytes(&mut container.blocks.get_mut(at)?.1);
        }
    }
    Some(container.bytes())
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = usize::try_from(long(rest)?).ok()?;
    take(rest, size)
}

/// Avro's long: zigzag, seven bits in a byte, the lowest first.
fn long(rest: &mut &[u8]) -> Option<i64> {
    let mut zigzag = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        zigzag |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
        }
    }
    None
}

fn put_long(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_long(out, text.len() as i64);
    out.extend(text);
}
