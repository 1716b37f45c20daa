import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { ISSUE_ANCHORS } from '../../src/core/issue-causes.js';
import type { Database } from '../../src/db/connection/database.js';
import { sweeps } from '../../src/jobs/sweeps.js';
import { metricsOf } from '../observability/metrics-of.js';

// deploy/monitoring and docs/runbook.md. test/monitoring evaluates the rules.

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const runbook = read('docs/runbook.md');
const headings = [...runbook.matchAll(/^### (\w+)$/gm)].map(([, name]) => name!);
/** GitHub's anchor of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');

const Rules = z.object({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Muster[A-Z]\w+$/),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook_url: z.string() }),
        }),
      ),
    }),
  ),
});
const rules = Rules.parse(parse(read('deploy/monitoring/muster.rules.yaml'))).groups.flatMap((group) => group.rules);

const Target = z.object({ expr: z.string(), refId: z.string(), datasource: z.object({ uid: z.literal('${datasource}') }) });
const Panel = z.object({
  id: z.number(),
  type: z.string(),
  title: z.string().min(1),
  gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
});
const Filled = Panel.extend({
  description: z.string().min(1),
  fieldConfig: z.object({ defaults: z.object({ unit: z.string().min(1) }) }),
  datasource: z.object({ type: z.literal('prometheus'), uid: z.literal('${datasource}') }),
  targets: z.array(Target).min(1),
});
const Dashboard = z.object({
  schemaVersion: z.number(),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(z.union([Filled, Panel.extend({ type: z.literal('row') })])),
});
const dashboard = Dashboard.parse(JSON.parse(read('deploy/monitoring/muster.dashboard.json')));
const panels = dashboard.panels.flatMap((panel) => ('targets' in panel ? [panel] : []));

/** The names of samples of a scrape: a histogram has three. */
const registered = metricsOf({} as Database)
  .getMetricsAsArray()
  .map(({ name }) => name);
const samples = new Set(registered.flatMap((name) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]));
const unknownMetrics = (expression: string) => (expression.match(/muster_\w+/g) ?? []).filter((name) => !samples.has(name));

describe('the runbook', () => {
  test('has an entry for each alert and each cause of an issue, and no other', () => {
    expect(headings.toSorted()).toEqual([...rules.map(({ alert }) => alert), ...ISSUE_ANCHORS].toSorted());
  });

  test('says of each alert and each state what to look at, what to do, and when it is over', () => {
    const entries = runbook.split('## Errors of walks')[0]!.split(/^### /m).slice(1);
    for (const entry of entries)
      expect(entry).toMatch(/^\w+\n\n- \*\*Means:\*\* .+\n- \*\*Look at:\*\* .+\n- \*\*Do:\*\* .+\n- \*\*Over when:\*\* .+/);
  });

  test('leads to headings that exist', () => {
    const anchorsOf = (file: string) =>
      [...read(`docs/${file}`).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!));
    const links = [...runbook.matchAll(/\]\(([\w-]+\.md)?#([\w-]+)\)/g)].map(([, file = 'runbook.md', anchor]) => ({
      file,
      anchor,
    }));
    expect(links.length).toBeGreaterThan(40);
    expect(links.filter(({ file, anchor }) => !anchorsOf(file).includes(anchor!))).toEqual([]);
  });
});

describe('the alert rules', () => {
  test('name metrics that exist, and lead to their entries', () => {
    for (const { alert, expr, annotations } of rules) {
      expect([alert, unknownMetrics(expr)]).toEqual([alert, []]);
      expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
    }
  });

  test('tell of each sweep that comes every ten seconds or oftener', () => {
    const often = sweeps({} as Parameters<typeof sweeps>[0]).filter(({ everyMs }) => everyMs <= 10_000);
    const [, names = ''] = /sweep=~"([^"]+)"/.exec(rules.find(({ alert }) => alert === 'MusterSweepLate')!.expr)!;
    expect(names.split('|').toSorted()).toEqual(often.map(({ name }) => name).toSorted());
  });
});

describe('the dashboard', () => {
  test('asks for metrics that exist, and for nearly all of them', () => {
    for (const { title, targets } of panels)
      for (const { expr } of targets) expect([title, unknownMetrics(expr)]).toEqual([title, []]);
    const asked = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n');
    const unused = registered.filter((name) => name.startsWith('muster_') && !new RegExp(`${name}(?:_bucket)?\\b`).test(asked));
    // Others say the same by environment, list or state.
    expect(unused.toSorted()).toEqual(['muster_lists', 'muster_lists_unverified', 'muster_tokens_due']);
  });

  test('counts the metrics of several API processes once', () => {
    const sums = panels
      .flatMap(({ targets }) => targets.map(({ expr }) => expr))
      .filter((expr) => /\b(?:rate|increase)\(/.test(expr));
    for (const expr of sums) expect(expr).toMatch(/max without \(instance, pod\) \((?:rate|increase)\(/);
  });

  test('follows the questions of an operator, and has no two panels in one place', () => {
    const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).toEqual(['Is the night complete?', 'What fails?', 'Is anything stuck?', 'Workers', 'Request budget', 'Latency']);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(cells.length).toBe(new Set(cells).size);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });
});
