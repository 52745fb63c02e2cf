//! Charts: values as percentages of a plot, which a template draws as SVG.

use std::collections::BTreeSet;

use minijinja::Value as Item;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::format::{number, short};

/// How an axis places values.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scale {
    Linear,
    Log,
    /// Quantiles by the number of nines: 0.9, 0.99, 0.999 are equally far apart.
    Nines,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
}

/// A value with the ends of its interval, which are the value itself if it has none.
struct Point {
    server: String,
    x: f64,
    y: [f64; 3],
    is_valid: bool,
    is_change: bool,
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
            Self::Nines => -(1.0 - value).log10(),
        }
    }

    /// Returns the logarithmic scale for positive values that differ much.
    fn fit(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.fold((f64::MAX, 0.0), |(low, high): (f64, f64), it| (low.min(it), high.max(it)));
        if low > 0.0 && high / low > 12.0 { Self::Log } else { Self::Linear }
    }
}

impl Axis {
    /// Returns an axis that shows all values; a linear one begins at 0.
    pub(super) fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let start = if scale == Scale::Linear { (0.0, 0.0) } else { (f64::MAX, f64::MIN) };
        let placed = values.map(|value| scale.place(value)).filter(|value| value.is_finite());
        let (from, to) = placed.fold(start, |(from, to), value| (value.min(from), value.max(to)));
        match (scale, to - from) {
            (_, width) if width < 0.0 => Self { scale, from: 0.0, to: 1.0 },
            (Scale::Linear, width) => {
                Self { scale, from, to: from + if width > 0.0 { width * 1.06 } else { 1.0 } }
            }
            (Scale::Log, width) => {
                let margin = (width * 0.05).max(0.004);
                Self { scale, from: from - margin, to: to + margin }
            }
            (Scale::Nines, width) => Self { scale, from: 0.0, to: from + width.max(1.0) },
        }
    }

    /// Returns a value's place in per cent of the axis.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (self.scale.place(value) - self.from) / (self.to - self.from);
        (share.clamp(0.0, 1.0) * 1_000.0).round() / 10.0
    }

    pub(super) fn ticks(&self) -> Vec<Value> {
        let values: Vec<f64> = match self.scale {
            Scale::Linear => even_ticks(self.from, self.to),
            // Within one decade even steps read better.
            Scale::Log if self.to - self.from < 0.8 => even_ticks(10f64.powf(self.from), 10f64.powf(self.to)),
            Scale::Log => {
                let steps: &[f64] = if self.to - self.from < 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let decades = self.from.floor() as i32..=self.to.ceil() as i32;
                decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade))).collect()
            }
            Scale::Nines => {
                [0.0, 0.5].into_iter().chain((1..12).map(|nines| 1.0 - 10f64.powi(-nines))).collect()
            }
        };
        let is_inside = |value: &f64| (self.from - 1e-9..=self.to + 1e-9).contains(&self.scale.place(*value));
        let label = |value: f64| match self.scale {
            Scale::Nines => {
                // Binary fractions would print as 99.90000000000001.
                let text = format!("{:.9}", value * 100.0);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            _ => short(value),
        };
        values
            .into_iter()
            .filter(is_inside)
            .map(|value| json!({ "at": self.at(value), "label": label(value) }))
            .collect()
    }
}

/// Returns about five multiples of 1, 2 or 5 and a power of ten.
fn even_ticks(from: f64, to: f64) -> Vec<f64> {
    let rough = (to - from) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(1.0);
    ((from / step).ceil() as i64..=(to / step).floor() as i64).map(|number| number as f64 * step).collect()
}

/// Draws a figure of some items over another one, a line for each server. Items without the figure are left out.
///
/// The fields are dotted names; a figure of three numbers is a median with its interval. Items may have `valid`, and
/// `changed`, which marks a change since the item before.
pub(super) fn chart(items: &[Item], fields: [&str; 2], scales: [Option<Scale>; 2]) -> Value {
    let mut points: Vec<Point> = items.iter().filter_map(|item| Point::of(item, fields)).collect();
    // The maximum, at infinitely many nines, has no place.
    points.retain(|point| scales[0] != Some(Scale::Nines) || point.x < 1.0);
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let x_scale = scales[0].unwrap_or(Scale::fit(points.iter().map(|point| point.x)));
    let y_scale = scales[1].unwrap_or(Scale::fit(points.iter().map(|point| point.y[0])));
    let x_axis = Axis::over(x_scale, points.iter().map(|point| point.x));
    let y_axis = Axis::over(y_scale, points.iter().flat_map(|point| point.y));
    let servers: BTreeSet<&str> = points.iter().map(|point| &*point.server).collect();
    let line = |server: &&str| {
        let (mut path, mut dots) = (String::new(), Vec::new());
        for point in points.iter().filter(|point| point.server == *server) {
            let (x, [y, low, high]) = (x_axis.at(point.x), point.y.map(|y| y_axis.at(y)));
            path.push_str(&format!("{x},{:.1} ", 100.0 - y));
            let text = format!("{server}: {} at {}", number(point.y[0]), number(point.x));
            dots.push(
                json!({ "x": x, "y": y, "low": low, "high": high, "is_valid": point.is_valid, "text": text }),
            );
        }
        json!({ "name": server, "path": path, "dots": dots })
    };
    let lines: Vec<Value> = servers.iter().map(line).collect();
    let changes = points.iter().filter(|point| point.is_change).map(|point| x_axis.at(point.x - 0.5));
    let changes: Vec<f64> = changes.collect();
    json!({ "x_ticks": x_axis.ticks(), "y_ticks": y_axis.ticks(), "lines": lines, "changes": changes })
}

impl Point {
    fn of(item: &Item, [x, y]: [&str; 2]) -> Option<Self> {
        let field =
            |path: &str| path.split('.').try_fold(item.clone(), |item, name| item.get_attr(name).ok());
        let float = |value: Item| f64::try_from(value).ok();
        let y = field(y)?;
        let end = |at| y.get_item_by_index(at).ok().and_then(float);
        let median = float(y.clone()).or_else(|| end(0))?;
        let is = |name| field(name).filter(|value| !value.is_undefined()).map(|value| value.is_true());
        Some(Self {
            server: field("server")?.to_string(),
            x: float(field(x)?)?,
            y: [median, end(1).unwrap_or(median), end(2).unwrap_or(median)],
            is_valid: is("valid").unwrap_or(true),
            is_change: is("changed").unwrap_or(false),
        })
    }
}
