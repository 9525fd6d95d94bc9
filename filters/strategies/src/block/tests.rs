use proptest::prelude::*;

use super::{
    BLOCK_BYTES, LANES, Lanes, alphanumeric, bits, controls, equal, has_control_or_return,
    may_begin_control, padded, places, word,
};

proptest! {
    #[test]
    fn bits_are_those_of_a_loop(bytes in prop::array::uniform32(any::<u8>()), byte in any::<u8>(), limit in 0_u8..0x80) {
        let block = padded(&[bytes, bytes.map(|byte| byte % 0x24)].concat(), 0);
        let slowly = |is: &dyn Fn(u8) -> bool| {
            let found = block.iter().enumerate().filter(|(_, byte)| is(**byte));
            found.map(|(idx, _)| 1_u64 << idx).sum::<u64>()
        };
        let known = block[usize::from(byte) % BLOCK_BYTES];
        for byte in [byte, known] {
            prop_assert_eq!(equal(&block, byte), slowly(&|there| there == byte));
        }
        prop_assert_eq!(bits(&block, |lanes| lanes.up_to(limit)), slowly(&|there| there <= limit));
        let begins = |there: u8| there.is_ascii_control() && !b"\t\n\r".contains(&there) || there == 0xc2;
        prop_assert_eq!(bits(&block, alphanumeric), slowly(&|there| there.is_ascii_alphanumeric()));
        prop_assert_eq!(controls(&block), slowly(&|there| there.is_ascii_control()));
        prop_assert_eq!(may_begin_control(&block), slowly(&begins));
        let is_odd = |lanes: Lanes| lanes.up_to(limit).or(lanes.equal(0xc2)).without(lanes.equal(known));
        let found = bits(&block, is_odd);
        prop_assert_eq!(found, slowly(&|there| (there <= limit || there == 0xc2) && there != known));
        let has_other = slowly(&|there| begins(there) || there == b'\r') != 0;
        prop_assert_eq!(has_control_or_return(&block), has_other);
        let listed: Vec<usize> = places(found).collect();
        prop_assert!(listed.iter().all(|place| found >> place & 1 == 1));
        prop_assert_eq!(listed.len(), found.count_ones() as usize);
    }

    #[test]
    fn words_do_as_vectors_do(bytes in prop::array::uniform16(any::<u8>()), byte in any::<u8>(), limit in 0_u8..0x80) {
        let bytes: [u8; LANES] = bytes;
        let (one, other) = (Lanes::of(&bytes), word::Lanes::of(&bytes));
        for byte in [byte, bytes[0]] {
            prop_assert_eq!(one.equal(byte).bits(), other.equal(byte).bits());
            let (a, b) = (one.lower(), other.lower());
            prop_assert_eq!(a.between(b'a', b'z').bits(), b.between(b'a', b'z').bits());
            let (a, b) = (one.up_to(limit), other.up_to(limit));
            prop_assert_eq!(a.bits(), b.bits());
            prop_assert_eq!(a.or(one.equal(byte)).bits(), b.or(other.equal(byte)).bits());
            prop_assert_eq!(a.without(one.equal(byte)).bits(), b.without(other.equal(byte)).bits());
        }
    }
}
