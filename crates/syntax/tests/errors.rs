//! What a person reads for typical mistakes, compared whole.

mod common;

use common::{errors, in_body};

#[test]
fn a_register_minus_a_constant() {
    let text = in_body("ld.global.b32 %r1, [%r2-4];");
    let expected = "error[E0101]: `-` cannot follow the name `%r2`
 --> k.ptx:1:36
  |
1 | .func f() { ld.global.b32 %r1, [%r2-4];
  |                                    ^ expected `+`
  |
  = help: write `%r2+-4`";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_forgotten_semicolon_does_not_hide_the_next_line() {
    let text = in_body(
        "add.s32 %r1, %r2, %r3
    add.s32 %r1 %r2;",
    );
    let expected = "error[E0101]: expected `;` at the end of this instruction
 --> k.ptx:1:34
  |
1 | .func f() { add.s32 %r1, %r2, %r3
  |                                  ^

error[E0101]: expected `,` or `;`, found `%r2`
 --> k.ptx:2:17
  |
2 |     add.s32 %r1 %r2;
  |                 ^^^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_forgotten_semicolon_behind_a_bare_opcode() {
    let text = in_body(
        "bar.sync
    mov.b32 %r1, %r2;",
    );
    let expected = "error[E0101]: expected `;` at the end of this instruction
 --> k.ptx:1:21
  |
1 | .func f() { bar.sync
  |                     ^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_forgotten_comma() {
    let text = in_body("add.s32 %r1, %r2 %r3;");
    let expected = "error[E0101]: expected `,` or `;`, found `%r3`
 --> k.ptx:1:30
  |
1 | .func f() { add.s32 %r1, %r2 %r3;
  |                              ^^^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_comma_too_many() {
    let text = in_body("add.s32 %r1, %r2,, 5;");
    let expected = "error[E0101]: expected an operand, found `,`
 --> k.ptx:1:30
  |
1 | .func f() { add.s32 %r1, %r2,, 5;
  |                              ^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_short_float() {
    let text = in_body("mov.f32 %f1, 0f3f8000;");
    let expected = "error[E0102]: `0f3f8000` is not a float literal
 --> k.ptx:1:26
  |
1 | .func f() { mov.f32 %f1, 0f3f8000;
  |                          ^^^^^^^^
  |
  = help: write exactly 8 hexadecimal digits behind `0f`";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_negated_exact_float() {
    let text = in_body("mov.f32 %f1, -0f3f800000;");
    let expected = "error[E0101]: a `0f` literal cannot be part of an expression
 --> k.ptx:1:27
  |
1 | .func f() { mov.f32 %f1, -0f3f800000;
  |                           ^^^^^^^^^^
  |
  = help: the sign is the top bit of the digits: the negative of this is `0fBF800000`
  = section: Floating-Point Constants";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_float_with_suffix() {
    let text = in_body("mov.f32 %f1, 1.5f;");
    let expected = "error[E0102]: `1.5f` is not a float literal
 --> k.ptx:1:26
  |
1 | .func f() { mov.f32 %f1, 1.5f;
  |                          ^^^^
  |
  = help: float literals have no suffix";
    assert_eq!(errors(&text), expected);
}

#[test]
fn an_octal_digit() {
    let text = in_body("mov.b32 %r1, 08;");
    let expected = "error[E0102]: `08` is not an octal integer
 --> k.ptx:1:26
  |
1 | .func f() { mov.b32 %r1, 08;
  |                          ^^
  |
  = help: an integer that begins with `0` is octal: its digits are `0` to `7`";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_wrong_integer_suffix() {
    let text = in_body("mov.b32 %r1, 10UL;");
    let expected = "error[E0102]: `10UL` is not a decimal integer
 --> k.ptx:1:26
  |
1 | .func f() { mov.b32 %r1, 10UL;
  |                          ^^^^
  |
  = help: the only suffix of an integer is `U`";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_remainder_without_blank() {
    let text = in_body("mov.b32 %r1, 10%3;");
    let expected = "error[E0101]: expected one of an operator, `,`, `;`, found `%3`
 --> k.ptx:1:28
  |
1 | .func f() { mov.b32 %r1, 10%3;
  |                            ^^
  |
  = help: write a blank behind the operator `%`";
    assert_eq!(errors(&text), expected);
}

#[test]
fn an_open_vector() {
    let text = in_body("mov.b64 {%r1, %r2, %rd1;");
    let expected = "error[E0101]: expected `,` or `}`, found `;`
 --> k.ptx:1:36
  |
1 | .func f() { mov.b64 {%r1, %r2, %rd1;
  |                                    ^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn an_open_address() {
    let text = in_body("ld.global.b32 %r1, [%rd1+4;");
    let expected = "error[E0101]: expected one of `+`, `,`, `]`, found `;`
 --> k.ptx:1:39
  |
1 | .func f() { ld.global.b32 %r1, [%rd1+4;
  |                                       ^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn an_assignment() {
    let text = in_body("%r1 = 5;");
    let expected = "error[E0101]: expected an instruction, found `%r1`
 --> k.ptx:1:13
  |
1 | .func f() { %r1 = 5;
  |             ^^^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_guarded_block() {
    let text = in_body("@%p { ret; }");
    let expected = "error[E0101]: a block cannot have a guard
 --> k.ptx:1:17
  |
1 | .func f() { @%p { ret; }
  |                 ^
  |
  = help: branch around the block";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_letter_that_is_not_ascii() {
    let text = in_body("mov.b32 é, 5;");
    let expected = "error[E0103]: the character `é` is not ASCII
 --> k.ptx:1:21
  |
1 | .func f() { mov.b32 é, 5;
  |                     ^
  |
  = help: characters that are not ASCII can stand in comments and strings only
  = section: Source Format";
    assert_eq!(errors(&text), expected);
}

#[test]
fn characters_that_nobody_sees_have_numbers() {
    assert!(errors(&in_body("mov.b32\u{a0}%r1, 5;")).contains("the character U+00A0 is not ASCII"));
    let marked = errors(&format!("\u{feff}{}", in_body("ret;")));
    assert!(marked.contains("the text begins with a byte order mark"), "{marked}");
    assert_eq!(marked.matches("error[").count(), 1, "{marked}");
}

#[test]
fn an_open_string() {
    let text = in_body(r#".pragma "nounroll;"#);
    let expected = r#"error[E0102]: a string without its closing `"`
 --> k.ptx:1:21
  |
1 | .func f() { .pragma "nounroll;
  |                     ^
  |
  = help: a string ends on the line that it begins on"#;
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_linking_directive_in_a_body() {
    let text = in_body(".visible .shared .b32 y;");
    let expected = "error[E0101]: `.visible` cannot stand in a body
 --> k.ptx:1:13
  |
1 | .func f() { .visible .shared .b32 y;
  |             ^^^^^^^^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_prototype_without_label() {
    let text = in_body(".callprototype _;");
    let expected = "error[E0101]: `.callprototype` needs a label in front of it
 --> k.ptx:1:13
  |
1 | .func f() { .callprototype _;
  |             ^^^^^^^^^^^^^^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_type_before_its_alignment() {
    let text = in_body(".shared .b32 .align 8 x;");
    let expected = "error[E0101]: expected a name, found `.align`
 --> k.ptx:1:26
  |
1 | .func f() { .shared .b32 .align 8 x;
  |                          ^^^^^^
  |
  = help: alignment, attributes and vector stand between the state space and the type";
    assert_eq!(errors(&text), expected);
}

#[test]
fn a_type_without_dot() {
    let text = in_body(".reg b32 x;");
    let expected = "error[E0101]: expected a type such as `.b32`, found `b32`
 --> k.ptx:1:18
  |
1 | .func f() { .reg b32 x;
  |                  ^^^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn an_array_of_parameterized_names() {
    let text = in_body(".reg .b32 %r<4>[2];");
    let expected = "error[E0101]: expected `,` or `;`, found `[`
 --> k.ptx:1:28
  |
1 | .func f() { .reg .b32 %r<4>[2];
  |                            ^";
    assert_eq!(errors(&text), expected);
}

#[test]
fn instructions_outside_of_a_function() {
    let text = ".version 8.0
add.s32 %r1, %r2, %r3;
ret;
.global .b32 x
";
    let expected = "error[E0101]: expected a directive, found `add`
 --> k.ptx:2:1
  |
2 | add.s32 %r1, %r2, %r3;
  | ^^^
  |
  = help: instructions and labels stand in the body of an `.entry` or a `.func`

error[E0101]: expected `;` at the end of this declaration
 --> k.ptx:4:15
  |
4 | .global .b32 x
  |               ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn a_brace_too_many() {
    let text = ".func f() { ret; } }
.func g() { ret }
";
    let expected = "error[E0101]: `}` closes nothing
 --> k.ptx:1:20
  |
1 | .func f() { ret; } }
  |                    ^

error[E0101]: expected `;` at the end of this instruction
 --> k.ptx:2:16
  |
2 | .func g() { ret }
  |                ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn a_brace_too_few() {
    let text = ".func f() {
  {
    ret;
}
.visible .func g() { ret; }
";
    let expected = "error[E0101]: this `{` is never closed
 --> k.ptx:1:11
  |
1 | .func f() {
  |           ^
...
5 | .visible .func g() { ret; }
  | -------- expected `}`: the next function begins here";
    assert_eq!(errors(text), expected);
}

#[test]
fn parameters() {
    let text = ".entry k(.param .u64 a
  .param u32 b,
  .param .u32 c) { ret }
";
    let expected = "error[E0101]: expected `,` or `)`, found `.param`
 --> k.ptx:2:3
  |
2 |   .param u32 b,
  |   ^^^^^^

error[E0101]: expected a type such as `.b32`, found `u32`
 --> k.ptx:2:10
  |
2 |   .param u32 b,
  |          ^^^

error[E0101]: expected `;` at the end of this instruction
 --> k.ptx:3:23
  |
3 |   .param .u32 c) { ret }
  |                       ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn a_header_without_name() {
    let text = ".entry (.param .u64 a) {
  ret
}
";
    let expected = "error[E0101]: expected the name of an entry, found `(`
 --> k.ptx:1:8
  |
1 | .entry (.param .u64 a) {
  |        ^

error[E0101]: expected `;` at the end of this instruction
 --> k.ptx:2:6
  |
2 |   ret
  |      ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn versions() {
    let text = ".version 8
.target 80
.address_size sixty
";
    let expected = "error[E0102]: expected a version such as `8.0`, found `8`
 --> k.ptx:1:10
  |
1 | .version 8
  |          ^

error[E0101]: expected a target such as `sm_80`, found `80`
 --> k.ptx:2:9
  |
2 | .target 80
  |         ^^

error[E0101]: expected `32` or `64`, found `sixty`
 --> k.ptx:3:15
  |
3 | .address_size sixty
  |               ^^^^^";
    assert_eq!(errors(text), expected);
}

#[test]
fn a_macro() {
    let text = "#define N 5
.global .b32 x[N];
";
    let expected = "error[E0101]: the preprocessor directive `#define` is not PTX
 --> k.ptx:1:1
  |
1 | #define N 5
  | ^^^^^^^^^^^
  |
  = help: run the file through `cpp` first; only line markers are skipped

error[E0101]: expected a constant, found `N`
 --> k.ptx:2:16
  |
2 | .global .b32 x[N];
  |                ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn an_open_comment() {
    let text = ".func f() {
  ret; /* to be done
}
";
    let expected = "error[E0101]: a comment without its closing `*/`
 --> k.ptx:2:8
  |
2 |   ret; /* to be done
  |        ^^";
    assert_eq!(errors(text), expected);
}

#[test]
fn an_open_section() {
    let text = ".section .debug_str {
  .b8 1
";
    let expected = "error[E0101]: this `{` is never closed
 --> k.ptx:1:21
  |
1 | .section .debug_str {
  |                     ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn a_texture_with_values() {
    let text = ".global .texref t = { width = 4, filter_mode = nearest };
.global .samplerref s = { filter_mode nearest };
";
    let expected = "error[E0101]: expected one of an operator, `,`, `}`, found `nearest`
 --> k.ptx:2:39
  |
2 | .global .samplerref s = { filter_mode nearest };
  |                                       ^^^^^^^";
    assert_eq!(errors(text), expected);
}

#[test]
fn a_trailing_comma_in_a_list() {
    let text = ".global .b32 x[3] = {1, 2,};
";
    let expected = "error[E0101]: expected a constant, found `}`
 --> k.ptx:1:27
  |
1 | .global .b32 x[3] = {1, 2,};
  |                           ^";
    assert_eq!(errors(text), expected);
}

#[test]
fn an_empty_statement() {
    let text = ".func f() { ; ret; };
";
    let expected = "error[E0101]: expected one of an instruction, a label, a directive, `{`, `}`, found `;`
 --> k.ptx:1:13
  |
1 | .func f() { ; ret; };
  |             ^

error[E0101]: expected a directive, found `;`
 --> k.ptx:1:21
  |
1 | .func f() { ; ret; };
  |                     ^";
    assert_eq!(errors(text), expected);
}
