//! Whether the library uses all that this CPU offers.

use super::library;

/// A CPU feature by the library's name, whether this CPU has it, and what it is good for.
type Feature = (&'static str, bool, &'static str);

#[cfg(target_arch = "x86_64")]
fn of_this_cpu() -> Vec<Feature> {
    use std::is_x86_feature_detected as has;
    vec![
        ("AVX2", has!("avx2"), "AVX2"),
        ("FMA", has!("fma"), "FMA"),
        ("F16C", has!("f16c"), "F16C"),
        ("BMI2", has!("bmi2"), "BMI2"),
        ("AVX_VNNI", has!("avxvnni"), "AVX-VNNI"),
        ("AVX512", has!("avx512f") && has!("avx512bw") && has!("avx512vl"), "AVX-512"),
        ("AVX512_VBMI", has!("avx512vbmi"), "AVX-512 VBMI"),
        ("AVX512_VNNI", has!("avx512vnni"), "AVX-512 VNNI"),
        ("AVX512_BF16", has!("avx512bf16"), "AVX-512 BF16"),
    ]
}

#[cfg(target_arch = "aarch64")]
fn of_this_cpu() -> Vec<Feature> {
    use std::arch::is_aarch64_feature_detected as has;
    vec![
        ("NEON", has!("neon"), "NEON"),
        ("FP16_VA", has!("fp16"), "half-precision arithmetic"),
        ("DOTPROD", has!("dotprod"), "dot products"),
        ("MATMUL_INT8", has!("i8mm"), "8-bit matrix products"),
        ("SVE", has!("sve"), "SVE"),
    ]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn of_this_cpu() -> Vec<Feature> {
    Vec::new()
}

/// One sentence for what this CPU has and the library was built without; empty when it uses all.
pub fn cpu_warnings() -> Vec<String> {
    warnings(&of_this_cpu(), &library::system_info())
}

fn warnings(cpu: &[Feature], system_info: &str) -> Vec<String> {
    let Some((_, info)) = system_info.split_once("CPU : ") else {
        return Vec::new();
    };
    let built: Vec<&str> = info
        .split('|')
        .filter_map(|entry| entry.split_once('='))
        .filter(|(_, value)| value.trim() != "0")
        .map(|(name, _)| name.trim())
        .collect();
    let missing: Vec<&str> = cpu
        .iter()
        .filter(|(name, present, _)| *present && !built.contains(name))
        .map(|(_, _, shown)| *shown)
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "this CPU has {}, but llama.cpp was built without: steps are slower than they could be; \
         rebuild on this machine with RUSTFLAGS=\"-C target-cpu=native\"",
        missing.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "CPU : SSE3 = 1 | AVX2 = 1 | FMA = 1 | REPACK = 1 | ";

    #[test]
    fn what_the_build_lacks_is_named() {
        let cpu = [("AVX2", true, "AVX2"), ("AVX512", true, "AVX-512"), ("SVE", false, "SVE")];
        let warnings = warnings(&cpu, INFO);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("has AVX-512, but"), "{}", warnings[0]);
    }

    #[test]
    fn a_build_that_uses_all_is_not_warned_of() {
        assert!(warnings(&[("AVX2", true, "AVX2")], INFO).is_empty());
        assert!(warnings(&[("AVX2", true, "AVX2")], "").is_empty());
    }
}
