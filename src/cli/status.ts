import type { Command } from 'commander';
import type { CompanyModel, RunModel } from '../api/models.js';
import { type AdminClient, openAdminClient, type Readiness } from './admin-client.js';
import { oldestVerified } from './companies.js';
import { CommandFailure } from './exit-code.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';
import { tableLines, time } from './table.js';

interface Overview extends Readiness {
  readonly companies: Readonly<Record<CompanyModel['status'], number>>;
  /** Counts of lists with and without a verified walk, and the start of the oldest of the verified walks. */
  readonly lists: { readonly verified: number; readonly never_verified: number; readonly oldest_verified_at: string | null };
  readonly runs: { readonly queued: number; readonly running: number };
  readonly companies_last_run_failed: number;
  readonly open_holds: number;
}

export function registerStatus(program: Command): void {
  operatorCommand(
    program,
    'status',
    'readiness, companies, freshness and runs at a glance; exit code 1 when a part is missing',
  ).action(async (options: OperatorOptions) => {
    const client = openAdminClient(options);
    const readiness = await client.readiness();
    const overview = readiness.ready ? await overlook(client, readiness) : readiness;
    if (options.json) console.log(JSON.stringify(overview));
    else
      for (const line of tableLines(rowsOf(overview), { '': ([name]) => name, ' ': ([, text]) => text }).slice(1))
        console.log(line);
    if (!readiness.ready) throw new CommandFailure('Muster is not ready.');
  });
}

async function overlook(client: AdminClient, readiness: Readiness): Promise<Overview> {
  const [companies, queued, running, failed, holds] = await Promise.all([
    client.list<CompanyModel>('/api/companies'),
    client.list<RunModel>('/api/runs', { status: 'queued' }),
    client.list<RunModel>('/api/runs', { status: 'running' }),
    lastRunsFailed(client),
    client.list<object>('/api/holds', { status: 'open' }),
  ]);
  const counts = { active: 0, reauthorization_required: 0, paused: 0 };
  for (const { status } of companies) counts[status] += 1;
  const lists = companies.flatMap(({ resources }) => resources);
  const verified = lists.filter(({ last_verified_at }) => last_verified_at !== null);
  return {
    ...readiness,
    companies: counts,
    lists: {
      verified: verified.length,
      never_verified: lists.length - verified.length,
      oldest_verified_at: oldestVerified(verified) ?? null,
    },
    runs: { queued: queued.length, running: running.length },
    companies_last_run_failed: failed,
    open_holds: holds.length,
  };
}

/** Reads the metrics: the API lists every run that ever failed, and does not say which of them was a company's last. */
async function lastRunsFailed(client: AdminClient): Promise<number> {
  const metrics = await client.getText('/metrics', {}, 'text/plain');
  return Number(/^muster_companies_last_run\{status="failed"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

function rowsOf(overview: Readiness | Overview): [string, string][] {
  const missing = Object.entries(overview.parts).filter(([, { ready }]) => !ready);
  const rows: [string, string][] = [
    [
      'ready',
      missing.length === 0 ? 'yes' : missing.map(([part, { problem }]) => `no: ${part} ${problem ?? ''}`.trim()).join('; '),
    ],
  ];
  if (!('companies' in overview)) return rows;
  const { companies, lists, runs, companies_last_run_failed: failed, open_holds } = overview;
  return [
    ...rows,
    [
      'companies',
      `${companies.active} active, ${companies.paused} paused, ${companies.reauthorization_required} must authorize again`,
    ],
    [
      'lists',
      `${lists.verified} verified (the oldest at ${time(lists.oldest_verified_at) ?? '-'}), ${lists.never_verified} never`,
    ],
    ['runs', `${runs.running} running, ${runs.queued} queued`],
    ['last runs', failed === 0 ? 'none failed' : `${companyCount(failed)} failed: see \`muster runs --status failed\``],
    ['open holds', open_holds === 0 ? '0' : `${open_holds}: see \`muster holds --status open\``],
  ];
}

function companyCount(count: number): string {
  return count === 1 ? '1 company' : `${count} companies`;
}
