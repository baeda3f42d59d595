//! Keys made by a schema.

use fieldstone_core::schema::Schema;

#[test]
fn builtins_parse_and_know_their_names() {
    for name in ["simulation", "mars"] {
        let schema = Schema::builtin(name).unwrap();
        assert_eq!(schema.name(), Some(name));
        assert!(schema.text().len() < 900, "{name} is {} bytes", schema.text().len());
    }
    let roles = Schema::builtin("simulation").unwrap().catalog_roles().clone();
    assert_eq!(roles.run.as_deref(), Some("run"));
    assert_eq!(roles.step.as_deref(), Some("step"));
    assert_eq!(roles.variable.as_deref(), Some("variable"));
}

#[test]
fn simulation_takes_run_variable_step_and_more() {
    let schema = Schema::builtin("simulation").unwrap();
    let key = schema
        .resolve(&[("variable", "t"), ("run", "a"), ("step", "06"), ("member", "3"), ("level", "850.0")])
        .unwrap();
    assert_eq!(key.to_string(), "{run=a}{variable=t}{step=6,level=850,member=3}");
}
