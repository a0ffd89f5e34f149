//! Trying a provider out.

use filestore_core::admin::CheckOutcome;
use filestore_core::config::ProviderRegistry;
use filestore_workspace::Remote;

pub(crate) async fn a_check_finds_the_provider_sound(one: &Remote, _two: &Remote) {
    let registry = ProviderRegistry::open(std::slice::from_ref(&one.config)).unwrap();
    let check = registry.cloud(&one.config.code).unwrap().check().await;
    for step in &check.steps {
        println!("{:16} {:8} {}", step.name, step.outcome.as_str(), step.detail);
    }
    assert!(check.can_serve, "{check:#?}");

    let outcome = |name| check.steps.iter().find(|step| step.name == name).map(|step| step.outcome);
    for name in [
        "write",
        "read",
        "range",
        "presign",
        "presigned GET",
        "presigned HEAD",
        "disposition",
        "grants",
    ] {
        assert_eq!(outcome(name), Some(CheckOutcome::Ok), "{name} in {check:#?}");
    }

    assert_eq!(one.objects().await, Vec::<String>::new(), "nothing is left");
}
