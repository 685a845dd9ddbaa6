"""What trainings with several workers say together, and as tables: a part of train_workers.py.

Measured are seconds, and the speed-up of an epoch: one worker's seconds divided by those of several that have as many
threads each. Derived are the speed-up if the exchange took no time, and how long a network needs for what is sent.
"""

from statistics import mean, stdev
from typing import Any

NEAR = 0.01  # how far the means of several workers may be from those of one
NETWORKS = {"1 Gbit/s": 125e6, "10 Gbit/s": 1.25e9}  # bytes a second


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """How good, how much sent, how fast; beside one worker."""
    quality: list[dict[str, Any]] = []
    for size in sorted({line["workers"] for line in lines}):
        seeds = {line["seed"]: line for line in reversed(lines) if line["workers"] == size}  # the first of each
        row: dict[str, Any] = {"workers": size, "seeds": sorted(seeds)}
        for metric in ("map", "ndcg10"):
            values = [line[metric] for line in seeds.values()]
            row[metric] = round(mean(values), 4)
            row[f"{metric}_spread"] = round(stdev(values), 4) if len(values) > 1 else None
            row[f"{metric}_beside_one"] = round(row[metric] - (quality or [row])[0][metric], 4)
        row["within"] = all(abs(row[f"{metric}_beside_one"]) <= NEAR for metric in ("map", "ndcg10"))
        for what in ("mb_sent_an_epoch_by_a_worker", "mb_sent_an_epoch_together"):
            row[what] = round(mean(line[what] for line in seeds.values()), 1)
        quality.append(row)
    speed = []
    alone = sorted((line for line in lines if line["alone"]), key=lambda line: (line["threads"], line["workers"]))
    for line in alone:
        one = next((other for other in alone if (other["workers"], other["threads"]) == (1, line["threads"])), None)
        epoch = line["seconds_an_epoch"]
        without = epoch - line["seconds_of_exchange_an_epoch"]
        names = ("workers", "threads", "cores", "epochs", "seconds", "seconds_before_the_first_step")
        parts = ("seconds_an_epoch", "seconds_of_exchange_an_epoch", "seconds_of_scoring_an_epoch")
        derived = {
            "seconds_an_epoch_without_exchange": round(without, 3),
            "speed_up_without_exchange": one and round(one["seconds_an_epoch"] / without, 2),
            "seconds_to_send_an_epoch": {
                name: round(line["mb_sent_an_epoch_by_a_worker"] * 1e6 / rate, 2) for name, rate in NETWORKS.items()
            },
        }
        speed.append(
            {name: line[name] for name in names + parts}
            | {"speed_up_of_an_epoch": one and round(one["seconds_an_epoch"] / epoch, 2), "derived": derived}
        )
    about = {name: lines[0][name] for name in ("documents", "words", "word_matrix_mb", "queries")}
    return about | {"quality": quality, "speed": speed}


def tables(result: dict[str, Any]) -> str:
    """What was measured, in Markdown."""
    matrix = f"{result['word_matrix_mb']} MB"
    lines = [
        "| workers | MAP | NDCG@10 | beside one worker | sent an epoch by a worker | by all | word matrix |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["quality"]:
        scores = [
            f"{row[metric]:.3f}" + (f" ±{row[f'{metric}_spread']:.3f}" if row[f"{metric}_spread"] is not None else "")
            for metric in ("map", "ndcg10")
        ]
        beside = "" if row["workers"] == 1 else f"{row['map_beside_one']:+.4f} / {row['ndcg10_beside_one']:+.4f}"
        sent = [f"{row[f'mb_sent_an_epoch_{who}']:,} MB" for who in ("by_a_worker", "together")]
        lines.append(f"| {row['workers']} | {' | '.join(scores)} | {beside} | {' | '.join(sent)} | {matrix} |")
    names = " | ".join(f"to send it at {name}" for name in NETWORKS)
    lines += [
        "",
        "| workers | threads of each | cores | training | before the first step | an epoch | of it exchange | speed-up "
        f"| derived: without exchange | {names} |",
        "| --- " * (9 + len(NETWORKS)) + "|",
    ]
    for row in result["speed"]:
        derived = row["derived"]
        cells = [
            *(row["workers"], row["threads"], row["cores"]),
            f"{row['seconds']} s",
            f"{row['seconds_before_the_first_step']} s",
            f"{row['seconds_an_epoch']} s",
            f"{row['seconds_of_exchange_an_epoch']} s",
            row["speed_up_of_an_epoch"] or "",
            derived["speed_up_without_exchange"] or "",
            *(f"{seconds} s" for seconds in derived["seconds_to_send_an_epoch"].values()),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
