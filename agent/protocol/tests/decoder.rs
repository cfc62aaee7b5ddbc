//! The decoder against arbitrary bytes in arbitrary pieces.

#![allow(clippy::unwrap_used)]

use fourwalls_protocol::frame::{Decoder, Direction, Frame, FrameError, Header, HEADER_BYTES};
use fourwalls_protocol::{kind, request, wire};
use proptest::prelude::*;

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::ToAgent), Just(Direction::ToHost)]
}

/// Bytes that are often nearly right: short lengths, zero reserved fields.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let header = (0u32..64, any::<u8>(), any::<u8>(), any::<u32>(), 0u16..40).prop_map(
        |(length, kind, channel, stream, reserved)| {
            let mut bytes = Header {
                length,
                kind,
                channel,
                stream,
            }
            .encode()
            .to_vec();
            bytes[6] = u8::from(reserved == 0);
            bytes
        },
    );
    let piece = prop_oneof![header, prop::collection::vec(any::<u8>(), 0..40)];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn pieces(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut out = Vec::new();
    for cut in cuts.iter().cycle() {
        if rest.is_empty() || cuts.iter().all(|c| *c == 0) {
            break;
        }
        let (now, later) = rest.split_at((*cut).min(rest.len()));
        out.push(now.to_vec());
        rest = later;
    }
    out.push(rest.to_vec());
    out
}

fn run(direction: Direction, pieces: &[Vec<u8>]) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::new(direction);
    let mut frames = Vec::new();
    for piece in pieces {
        let mut input = piece.as_slice();
        loop {
            let before = input.len();
            match decoder.next_frame(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => {
                    assert!(input.is_empty(), "asked for more with bytes left");
                    break;
                }
                Err(error) => {
                    assert_eq!(decoder.next_frame(&mut input), Err(error), "errors stay");
                    return (frames, Some(error));
                }
            }
            assert!(decoder.buffered() <= HEADER_BYTES + direction.body_limit());
            assert!(before >= input.len());
        }
    }
    (frames, None)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunking_changes_nothing(
        direction in direction(),
        bytes in noise(),
        cuts in prop::collection::vec(0usize..50, 1..8),
    ) {
        let whole = run(direction, std::slice::from_ref(&bytes));
        let cut = run(direction, &pieces(&bytes, &cuts));
        prop_assert_eq!(&whole, &cut);
        let encoded: Vec<u8> = whole.0.iter().flat_map(Frame::encode).collect();
        prop_assert_eq!(&bytes[..encoded.len()], &encoded[..], "frames are what came in");
    }

    #[test]
    fn frames_come_back(
        frames in prop::collection::vec(
            (any::<u8>(), any::<u8>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..300)), 0..20),
        cuts in prop::collection::vec(1usize..400, 1..8),
    ) {
        let frames: Vec<Frame> =
            frames.into_iter().map(|(k, c, s, body)| Frame::new(k, c, s, body)).collect();
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        let (decoded, error) = run(Direction::ToAgent, &pieces(&bytes, &cuts));
        prop_assert_eq!(error, None);
        prop_assert_eq!(decoded, frames);
    }

    #[test]
    fn bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = wire::decode::<request::Hello>(&body);
        let _ = wire::decode::<request::ExecStart>(&body);
        let _ = wire::decode::<request::FileWrite>(&body);
        let _ = wire::decode_data(&body);
        let mut map = vec![0x81, 0xa4];
        map.extend_from_slice(b"argv");
        map.extend_from_slice(&body);
        let _ = wire::decode::<request::ExecStart>(&map);
    }
}

#[test]
fn limits_are_exact() {
    for direction in [Direction::ToAgent, Direction::ToHost] {
        let limit = u32::try_from(direction.body_limit()).unwrap();
        for (length, fits) in [(limit, true), (limit + 1, false), (u32::MAX, false)] {
            let head = Header {
                length,
                kind: kind::DATA,
                channel: 0,
                stream: 1,
            }
            .encode();
            let mut decoder = Decoder::new(direction);
            assert_eq!(decoder.next_frame(&mut head.as_slice()).is_ok(), fits);
        }
    }
}

#[test]
fn an_announced_body_costs_nothing_until_it_comes() {
    let head = Header {
        length: 4 << 20,
        kind: kind::DATA,
        channel: 0,
        stream: 1,
    }
    .encode();
    let mut decoder = Decoder::new(Direction::ToAgent);
    assert_eq!(decoder.next_frame(&mut head.as_slice()), Ok(None));
    assert_eq!(decoder.buffered(), HEADER_BYTES);
    let chunk = vec![7u8; 1 << 20];
    for _ in 0..3 {
        assert_eq!(decoder.next_frame(&mut chunk.as_slice()), Ok(None));
    }
    let frame = decoder.next_frame(&mut chunk.as_slice()).unwrap().unwrap();
    assert_eq!(frame.body.len(), 4 << 20);
    assert!(decoder.is_between_frames());
}

#[test]
fn reserved_bits_end_the_stream_until_reset() {
    let mut head = Header {
        length: 0,
        kind: kind::PING,
        channel: 0,
        stream: 1,
    }
    .encode();
    head[7] = 1;
    let mut decoder = Decoder::new(Direction::ToAgent);
    assert_eq!(
        decoder.next_frame(&mut head.as_slice()),
        Err(FrameError::Reserved(0x100))
    );
    head[7] = 0;
    assert!(decoder.next_frame(&mut head.as_slice()).is_err());
    decoder.reset();
    assert!(decoder.next_frame(&mut head.as_slice()).unwrap().is_some());
}

#[test]
fn bodies_are_maps_with_defaults() {
    let empty = wire::decode::<request::FileList>(&[0x80]).unwrap();
    assert_eq!(empty, request::FileList::default());
    assert!(wire::decode::<request::FileList>(&[]).is_err(), "no body");
    assert!(
        wire::decode::<request::FileList>(&[0x90]).is_err(),
        "an array"
    );
    assert!(
        wire::decode::<request::FileList>(&[0x80, 0xc0]).is_err(),
        "bytes after the map"
    );
    // {"depth": 2, "later": [1, {"a": nil}]}: a key of a later agent is passed over.
    let mut body = vec![0x82, 0xa5];
    body.extend_from_slice(b"depth\x02\xa5later\x92\x01\x81\xa1a\xc0");
    assert_eq!(wire::decode::<request::FileList>(&body).unwrap().depth, 2);
}
