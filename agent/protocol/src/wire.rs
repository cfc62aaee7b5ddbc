//! Bodies: MessagePack maps with string keys, and the raw body of `DATA`.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::frame::{DATA_OFFSET_BYTES, DATA_PAYLOAD_LIMIT};

/// Bytes that are bytes: paths, arguments, values of the environment.
pub type Bytes = serde_bytes::ByteBuf;

/// A body that is not what its kind says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError(pub String);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BodyError {}

/// The body of a message: a map with every field by name.
///
/// # Errors
/// None of the messages of this crate can fail; the encoder reports what it was given.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, BodyError> {
    rmp_serde::to_vec_named(message).map_err(|error| BodyError(error.to_string()))
}

/// Read a body; unknown keys are ignored, missing keys take their default.
///
/// # Errors
/// The body is no map, a field has another type, or bytes follow the map.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, BodyError> {
    if !starts_a_map(body) {
        // A struct would be read from an array too; the protocol knows maps only.
        return Err(BodyError("the body is not a map".to_owned()));
    }
    let mut rest = body;
    let message = T::deserialize(&mut rmp_serde::Deserializer::new(&mut rest))
        .map_err(|error| BodyError(error.to_string()))?;
    expect_empty(rest)?;
    Ok(message)
}

/// A kind without a body has none.
///
/// # Errors
/// There is one.
pub fn expect_empty(body: &[u8]) -> Result<(), BodyError> {
    if body.is_empty() {
        Ok(())
    } else {
        Err(BodyError(format!("{} bytes too many", body.len())))
    }
}

/// The body of a `DATA` frame.
#[must_use]
pub fn encode_data(offset: u64, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(DATA_OFFSET_BYTES + payload.len());
    body.extend_from_slice(&offset.to_le_bytes());
    body.extend_from_slice(payload);
    body
}

/// Offset and payload of a `DATA` body.
///
/// # Errors
/// No room for the offset, or more payload than allowed.
pub fn decode_data(body: &[u8]) -> Result<(u64, &[u8]), BodyError> {
    let Some((offset, payload)) = body.split_first_chunk::<DATA_OFFSET_BYTES>() else {
        return Err(BodyError("DATA without an offset".to_owned()));
    };
    if payload.len() > DATA_PAYLOAD_LIMIT {
        return Err(BodyError(format!(
            "DATA with {} bytes of payload",
            payload.len()
        )));
    }
    Ok((u64::from_le_bytes(*offset), payload))
}

fn starts_a_map(body: &[u8]) -> bool {
    matches!(body.first(), Some(0x80..=0x8f | 0xde | 0xdf))
}
