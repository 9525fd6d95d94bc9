//! `tools.permissions_preset`: which names there are, and who may name one. What it allows is tested where lines are taken apart.

use super::World;

#[test]
fn a_preset_is_one_of_those_there_are_and_the_operators_choice() {
    let errors = World::new()
        .user("tools.permissions_preset = \"develop\"")
        .errors();
    assert!(errors.contains("developer"), "{errors}");
    let project = World::new()
        .project("tools.permissions_preset = \"developer\"")
        .errors();
    assert!(
        project.contains("a project file may not set this"),
        "{project}"
    );
}
