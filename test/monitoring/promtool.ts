import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `npm run test:monitoring` builds it from the module of this folder. */
const PROMTOOL = fileURLToPath(new URL('promtool', import.meta.url));
export const RULES = fileURLToPath(new URL('../../deploy/monitoring/muster.rules.yaml', import.meta.url));

/** A series by its name with labels, and its values a minute, as promtool writes them. */
export type Series = Readonly<Record<string, string>>;

/** A moment of some series, and the alerts that must fire then, and no other. */
export interface AlertCase {
  readonly name: string;
  readonly series: Series;
  readonly minutes: number;
  readonly fires: readonly string[];
}

/** Runs promtool; returns its exit code and everything that it wrote. */
export function promtool(args: readonly string[], input = ''): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const child = execFile(PROMTOOL, args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, output: stdout + stderr }),
    );
    child.stdin!.end(input);
  });
}

/** Evaluates the rules over each case; returns what promtool says, which is its exit code 0 where each fires exactly its alerts. */
export async function evaluateAlerts(cases: readonly AlertCase[]): Promise<{ readonly code: number; readonly output: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-alerts-'));
  // JSON is YAML.
  const tests = cases.map(({ name, series, minutes, fires }) => ({
    name,
    interval: '1m',
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    promql_expr_test: [
      {
        expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: `${minutes}m`,
        exp_samples: fires.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  }));
  try {
    const file = join(folder, 'cases.json');
    writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
    return await promtool(['test', 'rules', file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
