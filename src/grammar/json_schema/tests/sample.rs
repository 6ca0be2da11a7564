//! Real schemas, where they are at hand: `PLEACH_SHARED` is the directory that has
//! `data/maskbench/sample_1200.jsonl`.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::super::{Conj, Document, Json, SchemaOptions, Shapes};
use super::membership::Membership;
use crate::grammar::Fuel;

const STEPS: u64 = 10_000_000;

fn conjs_of(shapes: &Shapes) -> Vec<Conj> {
    let mut out = Vec::new();
    for array in &shapes.arrays {
        out.extend(array.prefix.iter().chain(&array.rest).cloned());
        out.extend(array.contains.iter().map(|contains| contains.item.clone()));
    }
    for object in &shapes.objects {
        let possible = object.properties.iter().filter(|property| property.possible);
        out.extend(possible.map(|property| property.value.clone()));
        for rule in &object.free {
            out.extend(rule.patterns.iter().map(|(_, conj)| conj.clone()));
            out.push(rule.additional.clone());
        }
        out.extend(object.names.iter().cloned());
    }
    out
}

/// The shapes of every conjunction that the root reaches: how many conjunctions and
/// alternatives there are.
fn expand_all(document: &mut Document, fuel: &mut Fuel<'_>) -> Result<(usize, usize), String> {
    let root = document.root();
    let mut seen: FxHashSet<Conj> = FxHashSet::default();
    let mut queue = VecDeque::from([root.clone()]);
    seen.insert(root);
    let mut most = 0;
    while let Some(conj) = queue.pop_front() {
        let shapes = document.shapes(&conj, fuel).map_err(|error| error.to_string())?;
        let presence: usize = shapes.objects.iter().map(|object| object.presence.len()).sum();
        most =
            most.max(presence + shapes.arrays.len() + shapes.strings.len() + shapes.numbers.len());
        for next in conjs_of(&shapes) {
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    Ok((seen.len(), most))
}

#[test]
fn real_schemas_are_read_as_they_are_meant() {
    let Ok(shared) = std::env::var("PLEACH_SHARED") else {
        println!("skipped: PLEACH_SHARED is not set");
        return;
    };
    let path = std::path::Path::new(&shared).join("data/maskbench/sample_1200.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut schemas, mut refused) = (0, Vec::new());
    let (mut valid, mut invalid) = (0, 0);
    let mut wrong = Vec::new();
    let mut costs = Vec::new();
    for line in text.lines() {
        let line = Json::parse(line).unwrap();
        let text = |key: &str| match line.get(key) {
            Some(Json::String(text)) => text.to_string(),
            other => panic!("{key}: {other:?}"),
        };
        let id = text("id");
        schemas += 1;
        let mut fuel = Fuel::new(STEPS);
        let options = SchemaOptions::default();
        let start = std::time::Instant::now();
        let parsed = Document::parse(&text("schema"), &options, &mut fuel);
        let parse_time = start.elapsed();
        let expanded = parsed.map_err(|error| error.to_string()).and_then(|mut document| {
            let sizes = expand_all(&mut document, &mut fuel)?;
            Ok((document, sizes))
        });
        let time = start.elapsed();
        let (mut document, (conjs, most)) = match expanded {
            Ok(done) => done,
            Err(error) => {
                refused.push(format!("{id}: {error} ({time:?})"));
                continue;
            }
        };
        costs.push((
            time,
            parse_time,
            STEPS - fuel.steps_left(),
            conjs,
            most,
            text("schema").len(),
            id.clone(),
        ));
        let Some(Json::Array(tests)) = line.get("tests") else { panic!("{id}: no tests") };
        for test in tests {
            let (Some(Json::String(instance)), Some(Json::Bool(is_valid))) =
                (test.get("text"), test.get("valid"))
            else {
                panic!("{id}: {test:?}")
            };
            *if *is_valid { &mut valid } else { &mut invalid } += 1;
            let Ok(value) = Json::parse(instance) else {
                println!("{id}: instance is not JSON here");
                continue;
            };
            let root = document.root();
            let validator = document.accepts(&root, &value, &mut Fuel::new(STEPS));
            let mut membership = Membership { document: &mut document, fuel: Fuel::new(STEPS) };
            let member = membership.conj(&root, &value);
            if validator != Ok(*is_valid) || member != Ok(*is_valid) {
                wrong.push(format!(
                    "{id}: is {is_valid}, validator {validator:?}, shapes {member:?}: {instance:.200}"
                ));
            }
        }
    }
    costs.sort();
    println!(
        "{schemas} schemas, {} refused; {valid} valid and {invalid} invalid instances",
        refused.len()
    );
    for quantile in [0.5, 0.9, 0.99, 0.999] {
        println!("{quantile}: {:?}", costs[(costs.len() as f64 * quantile) as usize]);
    }
    println!("max: {:?}", costs.last());
    costs.sort_by_key(|cost| cost.4);
    println!(
        "most alternatives: {:?}",
        costs.iter().rev().take(12).map(|cost| (cost.4, &cost.6)).collect::<Vec<_>>()
    );
    refused.iter().for_each(|line| println!("refused {line}"));
    wrong.iter().for_each(|line| println!("wrong {line}"));
    assert!(refused.len() * 1000 <= schemas * 15, "{} of {schemas} refused", refused.len());
    assert!(wrong.is_empty(), "{} wrong", wrong.len());
}
