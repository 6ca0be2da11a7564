//! How much memory a token of context takes.

use crate::device::ggml::gguf::{GgufError, GgufMetadata, GgufValue};

/// Keys and values are held as 16-bit floats.
const BYTES_PER_VALUE: u64 = 2;

/// Bytes of KV memory for each token of a sequence: over all layers, the heads' keys and values.
/// For a model whose attention slides over a window it is the most, not what a long text takes.
/// `None` where the file does not say, or the model keeps something else than keys and values for
/// each head (recurrent states, a compressed latent).
pub(super) fn kv_bytes_per_token(
    metadata: &GgufMetadata,
    architecture: &str,
) -> Result<Option<u64>, GgufError> {
    let key = |name: &str| format!("{architecture}.{name}");
    let keeps_another_state = ["ssm.state_size", "wkv.head_size", "attention.kv_lora_rank"];
    if keeps_another_state.iter().any(|name| metadata.get(&key(name)).is_some()) {
        return Ok(None);
    }
    let layers: Option<u64> = metadata.integer(&key("block_count"))?;
    let heads: Option<u64> = metadata.integer(&key("attention.head_count")).unwrap_or(None);
    let width: Option<u64> = metadata.integer(&key("embedding_length"))?;
    let head_width = width.zip(heads).and_then(|(width, heads)| width.checked_div(heads));
    let key_width = metadata.integer(&key("attention.key_length"))?.or(head_width);
    let value_width = metadata.integer(&key("attention.value_length"))?.or(head_width);
    let kv_heads = kv_heads(metadata, &key("attention.head_count_kv"), layers, heads);
    let (Some(key_width), Some(value_width), Some(kv_heads)) = (key_width, value_width, kv_heads)
    else {
        return Ok(None);
    };
    Ok(key_width
        .checked_add(value_width)
        .and_then(|values| values.checked_mul(kv_heads))
        .and_then(|values| values.checked_mul(BYTES_PER_VALUE)))
}

/// Heads with keys and values of their own, over all layers: the file gives one number for every
/// layer, or a number for each; without it every head has its own.
fn kv_heads(
    metadata: &GgufMetadata,
    key: &str,
    layers: Option<u64>,
    heads: Option<u64>,
) -> Option<u64> {
    match metadata.get(key) {
        Some(GgufValue::Integers(each)) => u64::try_from(each.iter().sum::<i128>()).ok(),
        Some(GgufValue::Integer(every)) => layers?.checked_mul(u64::try_from(*every).ok()?),
        Some(_) => None,
        None => layers?.checked_mul(heads?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(extra: &[(&str, GgufValue)]) -> Option<u64> {
        let smollm2 = [
            ("llama.block_count", GgufValue::Integer(30)),
            ("llama.attention.head_count", GgufValue::Integer(9)),
            ("llama.attention.head_count_kv", GgufValue::Integer(3)),
            ("llama.embedding_length", GgufValue::Integer(576)),
        ];
        let values = smollm2.iter().chain(extra);
        let values = values.map(|(key, value)| ((*key).to_owned(), value.clone()));
        kv_bytes_per_token(&GgufMetadata::from_values(values), "llama").unwrap()
    }

    #[test]
    fn keys_and_values_of_every_layer_count() {
        // 30 layers, 3 heads, 64 wide, key and value, 2 bytes each.
        assert_eq!(bytes(&[]), Some(30 * 3 * 128 * 2));
        assert_eq!(
            bytes(&[("llama.attention.key_length", GgufValue::Integer(128))]),
            Some(30 * 3 * (128 + 64) * 2)
        );
        let each = GgufValue::Integers(vec![0, 4, 4]);
        assert_eq!(bytes(&[("llama.attention.head_count_kv", each)]), Some(8 * 128 * 2));
    }

    #[test]
    fn other_states_are_not_guessed() {
        assert_eq!(bytes(&[("llama.attention.kv_lora_rank", GgufValue::Integer(512))]), None);
        assert_eq!(bytes(&[("llama.attention.head_count", GgufValue::Integer(0))]), None);
        assert_eq!(kv_bytes_per_token(&GgufMetadata::default(), "llama").unwrap(), None);
    }
}
