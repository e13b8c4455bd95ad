//! What is checked before an evaluation asks anything.

use super::errors;
use super::planner::ANY_PROMPT;
use super::requests::EvalContext;
use super::tokens::tokens;
use crate::plan::{Part, Plan};
use crate::prompt::show;
use crate::source::{Diagnostic, Text};
use indexmap::IndexMap;

/// Arguments with which an agent continues an earlier session of its own.
const SESSIONS: [&str; 9] =
    ["--continue", "-c", "--resume", "-r", "resume", "--session-id", "--session", "-s", "--restore-chat-history"];

/// The warnings and errors so far, each once.
#[derive(Default)]
struct Findings {
    warnings: Vec<Diagnostic>,
    faults: Vec<Diagnostic>,
}

impl Findings {
    fn keep(&mut self, checked: Result<Vec<Diagnostic>, Vec<Diagnostic>>) {
        let (known, new) = match checked {
            Ok(warnings) => (&mut self.warnings, warnings),
            Err(faults) => (&mut self.faults, faults),
        };
        for new in new {
            // An evaluator without other steps is expected here.
            if new.code != "plan/judge-first" && !known.contains(&new) {
                known.push(new);
            }
        }
    }

    fn keep_plan(&mut self, planned: Result<Plan, Vec<Diagnostic>>) -> Option<Plan> {
        self.keep(planned.as_ref().map(|plan| plan.warnings.clone()).map_err(Clone::clone));
        planned.ok()
    }
}

/// Checks everything that can be checked before anything is asked, and returns the warnings. `most_tokens`: the
/// most tokens that a prompt may have, if it is to be improved.
///
/// # Errors
/// All errors.
pub fn check_evaluation(
    context: &EvalContext<'_>,
    improves: bool,
    most_tokens: usize,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let suite = context.suite;
    let mut found = Findings::default();
    // Of the plans of each executor, it is enough to know one.
    let (mut executors, mut smallest): (IndexMap<&str, Plan>, usize) = (IndexMap::new(), usize::MAX);
    for (generation, column) in (0..).zip(&suite.columns) {
        let plan = context.executor_plan(generation, ANY_PROMPT).ok();
        executors.extend(plan.map(|plan| (column.executor.value.as_str(), plan)));
        for case in &suite.cases {
            match context.execute_prompt(generation, &column.prompt, case) {
                Ok(prompt) => {
                    smallest = smallest.min(tokens(&prompt));
                    found.keep(context.check_prompt(generation, &prompt));
                }
                Err(why) => found.keep(Err(vec![errors::not_filled_in(&why)])),
            }
        }
    }
    for command in suite.commands() {
        found.keep_plan(context.planner.command_plan(command, ANY_PROMPT));
    }
    let evaluators: Vec<(&Text, Plan)> = (suite.evaluators.iter())
        .filter_map(|agent| Some((agent, found.keep_plan(context.planner.plan(agent, Part::Evaluates, ANY_PROMPT))?)))
        .collect();
    if improves {
        found.keep_plan(context.planner.plan(suite.rewriter(), Part::Answers, ANY_PROMPT));
    }
    if let Some(agent) = &suite.select_best {
        found.keep_plan(context.planner.plan(agent, Part::Answers, ANY_PROMPT));
    }
    for (agent, evaluator) in &evaluators {
        for (name, executor) in &executors {
            if let Some(word) = shared_session(executor, evaluator) {
                found.faults.push(errors::same_session(&agent.at, name, &agent.value, &word));
            }
        }
    }
    if let Some((most, _)) = &context.settings.limits.tokens
        && usize::try_from(*most).is_ok_and(|most| most < smallest)
        && smallest < usize::MAX
    {
        found.faults.push(errors::budget_too_small(*most, smallest));
    }
    let own = tokens(&suite.prompt);
    if improves && own > most_tokens {
        found.faults.push(errors::prompt_too_long(most_tokens, own));
    }
    if found.faults.is_empty() { Ok(found.warnings) } else { Err(found.faults) }
}

/// Returns the arguments by which both agents would continue the same session, if there are any.
fn shared_session(one: &Plan, other: &Plan) -> Option<String> {
    let sessions = |plan: &Plan| -> Vec<String> {
        let Some(step) = plan.steps.first() else { return Vec::new() };
        let prompt = step.prompt.as_ref().map(|prompt| &prompt.segments);
        let words: Vec<String> = step.argv.iter().filter(|word| Some(*word) != prompt).map(|word| show(word)).collect();
        let named = words.iter().enumerate().filter_map(|(index, word)| {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let value = value.or_else(|| words.get(index + 1).map(String::as_str)).unwrap_or_default();
            let takes_none = matches!(name, "--continue" | "-c");
            SESSIONS.contains(&name).then(|| if takes_none { name.to_string() } else { format!("{name} {value}") })
        });
        named.map(|session| format!("{}\n{session}", step.program.display())).collect()
    };
    let others = sessions(other);
    let shared = sessions(one).into_iter().find(|session| others.contains(session))?;
    shared.split_once('\n').map(|(_, words)| words.to_string())
}
