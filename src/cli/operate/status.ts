import type { Command } from 'commander';
import type { BudgetModel } from '../../api/operation/budget.js';
import type { LastNightModel } from '../../api/operation/last-night.js';
import type { OverviewModel } from '../../api/operation/overview.js';
import { CommandFailure } from '../exit-code.js';
import { time } from '../table.js';
import { pairLines, widthOf } from '../terminal.js';
import { openAdminClient } from './admin-client.js';
import { lastNightText } from './last-night.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';

export function registerStatus(program: Command): void {
  const what = 'readiness, companies, freshness and runs at a glance; exit code 1 when a part is missing';
  operatorCommand(program, 'status', what).action(async (options: OperatorOptions) => {
    const client = openAdminClient(options);
    const overview = await client.overview();
    if (options.json) console.log(JSON.stringify(overview));
    else {
      // Without its database Muster answers the overview alone.
      const night = overview.ready ? await client.get<LastNightModel>('/api/last-night') : undefined;
      const texts = { ...textsOf(overview), ...(night && { 'last night': lastNightText(night) }) };
      for (const line of pairLines(Object.entries(texts), widthOf())) console.log(line);
    }
    if (!overview.ready) throw new CommandFailure('Muster is not ready.');
  });
}

function readinessText({ ready, parts }: OverviewModel): string {
  if (ready) return 'yes';
  const missing = Object.entries(parts).filter(([, part]) => !part.ready);
  return missing.map(([part, { problem }]) => `no: ${part} ${problem ?? ''}`.trim()).join('; ');
}

function textsOf(overview: OverviewModel) {
  const {
    companies,
    lists,
    runs,
    workers,
    quiet_until: quietUntil,
    webhook_failing_since: failingSince,
    companies_last_run_failed: failed,
    estimated_seconds_left: left,
    last_export: exported,
    oldest_verified_at,
    holds_open,
    issues_open,
    issues_snoozed: snoozed,
    budget,
  } = overview;
  const oldest = time(oldest_verified_at) ?? '-';
  return {
    ready: readinessText(overview),
    companies: `${companies.active} active, ${companies.paused} paused, ${companies.reauthorization_required} must authorize again`,
    lists: `${lists.verified} verified, ${lists.late} late, ${lists.never} never${lists.unavailable > 0 ? `, ${lists.unavailable} unavailable` : ''} (the oldest proof is of ${oldest})`,
    runs: `${runs.running} running, ${runs.queued} queued${left === null ? '' : `, done in about ${Math.ceil(left / 60)} min at this pace`}`,
    ...(quietUntil !== null && { 'quiet hours': `until ${time(quietUntil)}: nothing is asked of the service` }),
    workers: workers === 0 ? 'none, so nothing is fetched: start one (`muster worker`), or see its log' : String(workers),
    ...(failingSince && {
      webhook: `takes nothing since ${time(failingSince)}: see \`muster notifications\`, then \`muster notifications redeliver-all\``,
    }),
    'last runs':
      failed === 0
        ? 'none failed'
        : `${failed} ${failed === 1 ? 'company' : 'companies'} failed: see \`muster runs --status failed\``,
    ...(exported && { 'last export': exportText(exported) }),
    'open issues': issuesText(issues_open, snoozed),
    'open holds': holds_open === 0 ? '0' : `${holds_open}: see \`muster holds --status open\``,
    ...Object.fromEntries(budget.map((one) => [`requests, ${one.environment}`, requestsText(one)])),
  };
}

function issuesText(open: number, snoozed: number): string {
  if (open + snoozed === 0) return '0';
  return `${open}${snoozed > 0 ? `, and ${snoozed} snoozed` : ''}: see \`muster issues\``;
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
