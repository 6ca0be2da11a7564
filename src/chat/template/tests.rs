use proptest::prelude::*;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::macros::datetime;

use super::*;

const NOW: OffsetDateTime = datetime!(2026-02-03 04:05:06 UTC);

/// Roles in brackets, tools first, calls as `name{arguments}`; reads `enable_thinking`.
const PLAIN: &str = "{%- if tools %}[tools]{{ tools | tojson }}\n{% endif %}
{%- for message in messages %}[{{ message.role }}]{{ message.content }}
{%- for call in message.tool_calls or [] %}({{ call.function.name }}{{ call.function.arguments | tojson }}){% endfor %}
{%- if message.reasoning_content %}<{{ message.reasoning_content }}>{% endif %};
{% endfor %}
{%- if add_generation_prompt %}[assistant]{% if enable_thinking is defined and not enable_thinking %}<>{% endif %}{% endif %}";

fn list(value: Value) -> Vec<Value> {
    value.as_array().cloned().unwrap()
}

fn input<'a>(messages: &'a [Value], kwargs: &'a Map<String, Value>) -> RenderInput<'a> {
    RenderInput {
        messages,
        tools: None,
        documents: None,
        add_generation_prompt: true,
        kwargs,
        bos_token: "<s>",
        eos_token: "</s>",
        now: NOW,
    }
}

fn render(source: &str, messages: Value) -> Result<String, TemplateError> {
    let messages = list(messages);
    ChatTemplate::compile(source)?.render(&input(&messages, &Map::new()))
}

/// Prepares with a template whose source is `source`.
fn prepare(source: &str, messages: Value) -> Result<Value, TemplateError> {
    let template = ChatTemplate::compile(source).unwrap();
    template.prepare(&list(messages), None).map(Value::Array)
}

fn call(arguments: Value) -> Value {
    json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}})
}

#[test]
fn a_conversation_renders() {
    let messages = json!([{"role": "user", "content": "<Hi> & 'bye'"}]);
    assert_eq!(render(PLAIN, messages).unwrap(), "[user]<Hi> & 'bye';\n[assistant]");
}

#[test]
fn tokens_time_and_kwargs_are_variables() {
    let kwargs = json!({"mood": "good", "eos_token": "E"}).as_object().cloned().unwrap();
    let template = ChatTemplate::compile(
        "{{ bos_token }}{{ eos_token }}{{ mood }} {{ strftime_now('%d %b %Y') }} {{ tools is none }}",
    )
    .unwrap();
    assert_eq!(template.render(&input(&[], &kwargs)).unwrap(), "<s>Egood 03 Feb 2026 True");
    assert!(template.reads_variable("mood"));
    assert!(!template.reads_variable("enable_thinking"));
}

#[test]
fn kwargs_cannot_replace_the_conversation() {
    for name in ["messages", "tools", "add_generation_prompt", "raise_exception", "strftime_now"] {
        let kwargs = Map::from_iter([(name.to_owned(), json!([]))]);
        let error = ChatTemplate::compile(PLAIN).unwrap().render(&input(&[], &kwargs)).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn the_templates_own_refusal_is_told_apart() {
    let error =
        render("{{ raise_exception('Roles must alternate, ' ~ 1) }}", json!([])).unwrap_err();
    assert_eq!(error, TemplateError::Raised("Roles must alternate, 1".to_owned()));
    let in_macro = "{% macro f() %}{{ raise_exception('no') }}{% endmacro %}{{ f() | upper }}";
    assert_eq!(render(in_macro, json!([])).unwrap_err(), TemplateError::Raised("no".to_owned()));
}

#[test]
fn errors_name_the_line() {
    let TemplateError::Compile { line, .. } = render("a\n{% if %}", json!([])).unwrap_err() else {
        panic!("compiled");
    };
    assert_eq!(line, 2);
    let failing = "{# #}\n\n{{ messages[0].content.nope.nope }}";
    let TemplateError::Render { line, .. } = render(failing, json!([{"content": 1}])).unwrap_err()
    else {
        panic!("rendered");
    };
    assert_eq!(line, 3);
}

#[test]
fn faulty_requests_are_render_errors() {
    // A schema property named like a method, a list of types, arguments that are text.
    let names = "{% for name, spec in messages[0].properties.items() %}{{ name }}{{ spec.type }}{% endfor %}";
    let messages = json!([{"properties": {"items": {"type": ["string", "null"]}}}]);
    assert_eq!(render(names, messages).unwrap(), "items['string', 'null']");
    let pairs = "{% for key, value in messages[0].arguments | items %}{{ key }}{% endfor %}";
    let error = render(pairs, json!([{"arguments": "{}"}])).unwrap_err();
    assert!(matches!(error, TemplateError::Render { .. }), "{error}");
}

#[test]
fn an_endless_template_runs_out_of_fuel() {
    let nine_loops = "{% for a in range(99) %}".repeat(9) + &"{% endfor %}".repeat(9);
    let doubling = "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
    for source in [nine_loops.as_str(), doubling, "{{ 'x' * 900000000000 }}"] {
        let source = format!("{{% if messages[0].go %}}{source}{{% endif %}}");
        let error = render(&source, json!([{"go": true}])).unwrap_err();
        let expected =
            matches!(error, TemplateError::OutOfFuel { .. } | TemplateError::Render { .. });
        assert!(expected, "{error}");
        assert!(render(&source, json!([{"go": false}])).is_ok());
    }
}

#[test]
fn a_template_that_never_ends_does_not_compile() {
    let source = "{% for a in range(9999) %}".repeat(4) + &"{% endfor %}".repeat(4);
    let error = ChatTemplate::compile(&source).unwrap_err();
    assert!(matches!(error, TemplateError::OutOfFuel { .. }), "{error}");
}

#[test]
fn endless_recursion_is_an_error() {
    let source = "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}";
    let error = render(source, json!([])).unwrap_err();
    assert!(matches!(error, TemplateError::Render { .. }), "{error}");
}

#[test]
fn deeply_nested_source_is_an_error() {
    for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("1**", ""), ("", "|e")]
    {
        for count in [100, 1000, 20_000] {
            // The short ones may compile; none may take the process down.
            let source = format!("{{{{ {}1{} }}}}", open.repeat(count), close.repeat(count));
            let compiled = ChatTemplate::compile(&source);
            assert!(count < 20_000 || compiled.is_err(), "{open}{close}");
        }
    }
    let blocks = "{% if true %}".repeat(20_000) + &"{% endif %}".repeat(20_000);
    assert!(ChatTemplate::compile(&blocks).is_err());
    let branches = format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(5_000));
    assert!(ChatTemplate::compile(&branches).is_err());
}

#[test]
fn values_nested_without_end_are_an_error() {
    for shown in ["tojson", "string"] {
        let source = format!(
            "{{% set ns = namespace(x=[]) %}}{{% for i in range(2000) %}}{{% set ns.x = [ns.x] %}}{{% endfor %}}{{{{ ns.x | {shown} }}}}"
        );
        let error = render(&source, json!([])).unwrap_err();
        assert!(error.to_string().contains("nested too deeply"), "{error}");
    }
}

#[test]
fn output_is_bounded() {
    let limits = Limits { output_bytes: 1000, ..Limits::default() };
    let template = ChatTemplate::compile_with("{{ messages[0].content }}", limits).unwrap();
    let fits = [json!({"content": "x".repeat(1000)})];
    assert_eq!(template.render(&input(&fits, &Map::new())).unwrap().len(), 1000);
    let error = template.render(&input(&[json!({"content": "x".repeat(1001)})], &Map::new()));
    assert_eq!(error.unwrap_err(), TemplateError::OutputTooLong { limit_bytes: 1000 });
}

#[test]
fn one_template_renders_on_many_threads() {
    let template = ChatTemplate::compile(PLAIN).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let template = &template;
            scope.spawn(move || {
                for round in 0..50 {
                    let text = format!("{thread} {round}");
                    let messages = [json!({"role": "user", "content": text})];
                    let expected = format!("[user]{text};\n[assistant]");
                    assert_eq!(template.render(&input(&messages, &Map::new())).unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn the_prefill_is_what_the_generation_prompt_adds() {
    let template = ChatTemplate::compile(PLAIN).unwrap();
    let messages = [json!({"role": "user", "content": "[assistant]"})];
    let prefill = |kwargs: Value| {
        let kwargs = kwargs.as_object().cloned().unwrap();
        template.generation_prefill(&input(&messages, &kwargs)).unwrap()
    };
    assert_eq!(prefill(json!({})), "[assistant]");
    assert_eq!(prefill(json!({"enable_thinking": false})), "[assistant]<>");
    let always = ChatTemplate::compile("{{ messages[0].content }}[assistant]").unwrap();
    assert_eq!(always.generation_prefill(&input(&messages, &Map::new())).unwrap(), "");
    let closes =
        ChatTemplate::compile("é{% if add_generation_prompt %}<bot>{% else %}<end>{% endif %}")
            .unwrap();
    assert_eq!(closes.generation_prefill(&input(&messages, &Map::new())).unwrap(), "bot>");
}

#[test]
fn a_prompt_can_end_inside_the_last_message() {
    let template = ChatTemplate::compile(PLAIN).unwrap();
    let continued = |text: &str| {
        let messages = [
            json!({"role": "user", "content": "Once"}),
            json!({"role": "assistant", "content": text}),
        ];
        template.render_continued(&input(&messages, &Map::new()))
    };
    assert_eq!(continued("Once upon ").unwrap(), "[user]Once;\n[assistant]Once upon ");
    assert!(continued("  ").is_err());
    let user = [json!({"role": "user", "content": "x"})];
    assert!(template.render_continued(&input(&user, &Map::new())).is_err());
    let shouting = ChatTemplate::compile("{{ messages[-1].content | upper }}").unwrap();
    let last = [json!({"role": "assistant", "content": "quiet"})];
    assert!(shouting.render_continued(&input(&last, &Map::new())).is_err());
    let trimming = ChatTemplate::compile("{{ messages[-1].content | trim }}<end>").unwrap();
    let last = [json!({"role": "assistant", "content": " quiet "})];
    assert_eq!(trimming.render_continued(&input(&last, &Map::new())).unwrap(), "quiet");
}

#[test]
fn a_plain_template_can_show_almost_all() {
    let template = ChatTemplate::compile(PLAIN).unwrap();
    let expected = TemplateCaps {
        text_content: true,
        list_content: false,
        system_role: true,
        developer_role: false,
        system_anywhere: true,
        repeated_roles: true,
        tools: true,
        tool_calls: true,
        parallel_tool_calls: true,
        tool_role: true,
        content_with_reasoning_and_calls: true,
        arguments: ArgumentsForm::Object,
        empty_content: EmptyContent::Text,
        reasoning_key: Some(ReasoningKey::ReasoningContent),
        thinking_variables: vec!["enable_thinking"],
    };
    assert_eq!(template.caps(), &expected);
}

#[test]
fn a_template_of_few_talents_is_found_out() {
    let source = "{% for m in messages %}
{%- if m.role not in ['user', 'assistant'] %}{{ raise_exception('Only user and assistant') }}{% endif %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}
{{- m.role }}: {{ m.content }}
{% endfor %}";
    let template = ChatTemplate::compile(source).unwrap();
    let caps = template.caps();
    assert!(caps.text_content && !caps.list_content);
    assert!(!caps.system_role && !caps.developer_role && !caps.system_anywhere);
    assert!(!caps.repeated_roles && !caps.tools && !caps.tool_calls && !caps.tool_role);
    assert_eq!(caps.reasoning_key, None);
    for (message, part) in [
        (json!({"role": "system", "content": "x"}), "role"),
        (json!({"role": "developer", "content": "x"}), "role"),
        (json!({"role": "tool", "content": "x"}), "role"),
        (
            json!({"role": "assistant", "content": "", "tool_calls": [call(json!("{}"))]}),
            "tool_calls",
        ),
    ] {
        let error = prepare(source, json!([message])).unwrap_err();
        let TemplateError::Message { index: 0, field, .. } = error else { panic!("{error}") };
        assert_eq!(field, part);
    }
}

#[test]
fn calls_that_a_template_does_not_show_can_be_written_as_text() {
    let template =
        ChatTemplate::compile("{% for m in messages %}{{ m.content }};{% endfor %}").unwrap();
    let message =
        json!({"role": "assistant", "content": "I look.", "tool_calls": [call(json!("{}"))]});
    let write = |calls: &[Value]| format!("<{}>", calls.len());
    let prepared = template.prepare(&[message], Some(&write)).unwrap();
    assert_eq!(prepared, [json!({"role": "assistant", "content": "I look.\n<1>"})]);
}

#[test]
fn arguments_take_the_templates_form() {
    let object = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}";
    let text = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}";
    let both = [
        (object, json!("{\"a\": [1.0, \"é\"]}"), json!({"a": [1.0, "é"]})),
        (object, json!({"a": 1}), json!({"a": 1})),
        (object, json!(""), json!({})),
        (object, json!("not json"), json!("not json")),
        (text, json!({"a": [1.0, "é"]}), json!("{\"a\": [1.0, \"é\"]}")),
        (text, json!("{\"a\":1}"), json!("{\"a\":1}")),
    ];
    for (source, given, expected) in both {
        let messages = json!([{"role": "assistant", "content": null, "tool_calls": [call(given)]}]);
        let prepared = prepare(source, messages).unwrap();
        assert_eq!(prepared[0]["tool_calls"][0]["function"]["arguments"], expected);
        assert_eq!(prepared[0]["content"], "");
    }
}

#[test]
fn content_takes_the_templates_form() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let strings = "{% for m in messages %}{{ m.content + '' }}{% endfor %}";
    let messages = json!([{"role": "user", "content": parts}]);
    assert_eq!(prepare(strings, messages.clone()).unwrap()[0]["content"], "a\nb");
    let lists =
        "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}";
    assert_eq!(prepare(lists, messages).unwrap()[0]["content"], parts);
    let text = json!([{"role": "user", "content": "x"}]);
    let wrapped = prepare(lists, text).unwrap();
    assert_eq!(wrapped[0]["content"], json!([{"type": "text", "text": "x"}]));
    let image = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}]);
    let error = prepare(strings, image).unwrap_err().to_string();
    assert!(error.contains("messages[0].content[1]") && error.contains("image_url"), "{error}");
    assert!(prepare(strings, json!([{"role": "user", "content": 5}])).is_err());
    assert!(prepare(strings, json!(["x"])).is_err());
}

#[test]
fn roles_and_reasoning_take_the_templates_form() {
    let source = "{% for m in messages %}{% if m.role == 'developer' %}{{ raise_exception('Unexpected role') }}{% endif %}{{ m.content }}{{ m.thinking }}{% endfor %}";
    let messages = json!([
        {"role": "developer", "content": "x"},
        {"role": "assistant", "content": "y", "reasoning": "z"},
    ]);
    let expected = json!([
        {"role": "system", "content": "x"},
        {"role": "assistant", "content": "y", "thinking": "z"},
    ]);
    assert_eq!(prepare(source, messages).unwrap(), expected);
}

#[test]
fn content_beside_thinking_and_calls_is_split_where_it_must_be() {
    let source = "{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}{{ raise_exception('both') }}{% endif %}{{ m.content }}{{ m.thinking }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
    let calls = json!([call(json!({}))]);
    let message =
        json!({"role": "assistant", "content": "a", "reasoning_content": "b", "tool_calls": calls});
    let expected = json!([
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "", "thinking": "b", "tool_calls": calls},
    ]);
    assert_eq!(prepare(source, json!([message])).unwrap(), expected);
}

#[test]
fn a_second_call_that_would_be_lost_is_an_error() {
    let source = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}";
    let two = json!([{"role": "assistant", "tool_calls": [call(json!({})), call(json!({}))]}]);
    assert!(prepare(source, two).unwrap_err().to_string().contains("only one tool call"));
    let one = json!([{"role": "assistant", "tool_calls": [call(json!({}))]}]);
    assert!(prepare(source, one).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_source_compiles_or_fails_without_a_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{%", "%}", "{{", "}}", "{#", "#}", "-", " ", "\n", "'", "\"", "if ", "for ", "x", " in ", "endfor",
                "endif", "generation", "endgeneration", "set ", "=", "messages", "|", "tojson", "(", ")", "[", "]",
                ":", "1", "~", ".items()", "macro ", "raw", "endraw", "é", "\\", "\r\n", "namespace", ",", "%",
            ]),
            0..40,
        ),
        text in "\\PC{0,10}",
    ) {
        let source = pieces.concat() + &text;
        if let Ok(template) = ChatTemplate::compile(&source) {
            let messages = [json!({"role": "user", "content": text})];
            let _ = template.render(&input(&messages, &Map::new()));
        }
    }

    #[test]
    fn any_content_comes_out_unchanged(text in any::<String>()) {
        let messages = json!([{"role": "user", "content": text}]);
        let expected = format!("[user]{text};\n[assistant]");
        prop_assert_eq!(render(PLAIN, messages).unwrap(), expected);
    }

    #[test]
    fn tojson_reads_back_as_the_same_value(keys in prop::collection::vec(any::<String>(), 0..5), integer in any::<i64>()) {
        let object: Map<String, Value> =
            keys.into_iter().enumerate().map(|(index, key)| (key.clone(), json!([key, index, integer]))).collect();
        let text = render("{{ messages[0] | tojson }}", json!([object])).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::Object(object));
    }

    #[test]
    fn floats_read_back_as_the_same_float(number in any::<f64>()) {
        let text = render("{{ messages[0] }}", json!([number])).unwrap();
        if number.is_finite() {
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
            prop_assert!(text.contains('.') || text.contains('e'));
        }
    }
}
