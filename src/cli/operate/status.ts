import type { Command } from 'commander';
import type { BudgetModel } from '../../api/operation/budget.js';
import type { OverviewModel } from '../../api/operation/overview.js';
import type { Readiness } from '../../api/plumbing/readiness.js';
import { CommandFailure } from '../exit-code.js';
import { tableLines, time } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';

export function registerStatus(program: Command): void {
  const what = 'readiness, companies, freshness and runs at a glance; exit code 1 when a part is missing';
  operatorCommand(program, 'status', what).action(async (options: OperatorOptions) => {
    const client = openAdminClient(options);
    const readiness = await client.readiness();
    const status = readiness.ready ? await readStatus(client) : undefined;
    if (options.json) console.log(JSON.stringify({ ...status, ...readiness }));
    else {
      const texts = Object.entries({ ready: textOf(readiness), ...(status && textsOf(status)) });
      const [, ...lines] = tableLines(texts, { '': ([name]) => name, ' ': ([, text]) => text });
      for (const line of lines) console.log(line);
    }
    if (!readiness.ready) throw new CommandFailure('Muster is not ready.');
  });
}

async function readStatus(client: AdminClient) {
  const [overview, metrics, budget] = await Promise.all([
    client.get<OverviewModel>('/api/overview'),
    client.getText('/metrics', {}, 'text/plain'),
    client.get<{ data: BudgetModel[] }>('/api/budget'),
  ]);
  return {
    ...overview,
    companies_last_run_failed: lastRunsFailed(metrics),
    /** Of the environment that takes longest; null where it is not known. */
    estimated_seconds_left: secondsLeft(metrics),
    budget: budget.data,
  };
}

/** From the metrics: the API lists every run that ever failed, and does not say which of them was a company's last. */
function lastRunsFailed(metrics: string): number {
  return Number(/^muster_companies_last_run\{status="failed"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

function secondsLeft(metrics: string): number | null {
  const left = [...metrics.matchAll(/^muster_night_seconds_left\{[^}]*\} (\d+)$/gm)].map(([, seconds]) => Number(seconds));
  return left.length === 0 ? null : Math.max(...left);
}

function textOf({ ready, parts }: Readiness): string {
  if (ready) return 'yes';
  const missing = Object.entries(parts).filter(([, part]) => !part.ready);
  return missing.map(([part, { problem }]) => `no: ${part} ${problem ?? ''}`.trim()).join('; ');
}

function textsOf({
  companies,
  lists,
  runs,
  workers,
  webhook_failing_since: failingSince,
  companies_last_run_failed: failed,
  estimated_seconds_left: left,
  last_export: exported,
  oldest_verified_at,
  holds_open,
  issues_open,
  budget,
}: Awaited<ReturnType<typeof readStatus>>) {
  const oldest = time(oldest_verified_at) ?? '-';
  return {
    companies: `${companies.active} active, ${companies.paused} paused, ${companies.reauthorization_required} must authorize again`,
    lists: `${lists.verified} verified, ${lists.late} late, ${lists.never} never${lists.unavailable > 0 ? `, ${lists.unavailable} unavailable` : ''} (the oldest proof is of ${oldest})`,
    runs: `${runs.running} running, ${runs.queued} queued${left === null ? '' : `, done in about ${Math.ceil(left / 60)} min at this pace`}`,
    workers: workers === 0 ? 'none, so nothing is fetched: start one (`muster worker`), or see its log' : String(workers),
    ...(failingSince && {
      webhook: `takes nothing since ${time(failingSince)}: see \`muster notifications\`, then \`muster notifications redeliver-all\``,
    }),
    'last runs':
      failed === 0
        ? 'none failed'
        : `${failed} ${failed === 1 ? 'company' : 'companies'} failed: see \`muster runs --status failed\``,
    ...(exported && { 'last export': exportText(exported) }),
    'open issues': issues_open === 0 ? '0' : `${issues_open}: see \`muster issues\``,
    'open holds': holds_open === 0 ? '0' : `${holds_open}: see \`muster holds --status open\``,
    ...Object.fromEntries(budget.map((one) => [`requests, ${one.environment}`, requestsText(one)])),
  };
}

function exportText({
  night,
  written,
  waiting,
  failed,
  finished_at,
  problem,
}: NonNullable<OverviewModel['last_export']>): string {
  const left = [...(waiting > 0 ? [`${waiting} to come`] : []), ...(failed > 0 ? [`${failed} failed: ${problem}`] : [])];
  return `${night}: ${written} ${written === 1 ? 'file' : 'files'}${finished_at ? ` by ${time(finished_at)}` : ''}${left.map((text) => `, ${text}`).join('')}`;
}

function requestsText({
  limit_per_second: limit,
  source,
  used_last_minute: used,
  refused_last_minute: refused,
}: BudgetModel): string {
  const most = limit === null ? 'no limit known' : `at most ${limit} a second (${source})`;
  return `${most}; in the last minute ${used}, of which ${refused} were refused`;
}
