//! Dates, times and durations of RFC 3339.

use crate::grammar::Fuel;
use crate::grammar::regular::{Dfa, RegularError};

/// `full-date`, with the days that the month has in that year.
pub(super) fn date(fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    let four = "([02468][048]|[13579][26])";
    // Years that are multiples of 4 and not of 100, or of 400.
    let leap = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|FOUR00)".replace("FOUR", four);
    let days = "(0[1-9]|1[0-9]|2[0-8])";
    let source = format!(
        "[0-9]{{4}}-((0[1-9]|1[0-2])-{days}|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|{leap}-02-29"
    );
    Dfa::whole_pattern(&source, fuel)
}

/// `full-time`. The second 60 is only there at 23:59 UTC.
pub(super) fn time(fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    let (hour, sixty, fraction) = ("([01][0-9]|2[0-3])", "[0-5][0-9]", r"(\.[0-9]+)?");
    let usual = format!("{hour}:{sixty}:{sixty}{fraction}([Zz]|[+-]{hour}:{sixty})");
    let mut leap = vec![format!("23:59:60{fraction}[Zz]")];
    for at in 0..24 {
        // Local time is UTC and the offset.
        let (ahead, behind) = ((at + 1) % 24, (23 - at) % 24);
        leap.push(format!(r"{at:02}:59:60{fraction}(\+{ahead:02}:00|-{behind:02}:00)"));
    }
    Dfa::whole_pattern(&format!("{usual}|{}", leap.join("|")), fuel)
}

/// `duration` of appendix A.
pub(super) fn duration() -> String {
    let time = "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)";
    let date = "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)";
    format!("P({date}({time})?|{time}|[0-9]+W)")
}
