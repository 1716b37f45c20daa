import { type Command, Option } from 'commander';
import { type CompanyModel, CompanyStatusName, ListProofName, ListStateName } from '../../api/companies/company-model.js';
import type { RekeyedModel } from '../../api/operation/rekey.js';
import { UsageFailure } from '../exit-code.js';
import { type Columns, members, print, spare, time } from '../table.js';
import { plain } from '../terminal.js';
import { openAdminClient } from './admin-client.js';
import {
  askingFirst,
  type CompanyOptions,
  companyCommand,
  companyOption,
  companyPath,
  confirm,
  environmentOption,
  type ListOptions,
  noneOf,
  operatorCommand,
  resourceOption,
} from './operator-command.js';

interface CompanyListOptions extends ListOptions {
  readonly search?: string;
  readonly state?: string;
  readonly proof?: string;
  readonly sort?: 'worst';
}

export function registerCompanies(program: Command): void {
  operatorCommand(program, 'companies', 'list the onboarded companies, or show one')
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(new Option('--status <status>', 'only companies with this status').choices(CompanyStatusName.options))
    .option('--search <text>', 'only companies with this text in their name, or at the beginning of their company_id')
    .addOption(resourceOption('only companies with this list in the given state'))
    .addOption(new Option('--state <state>', 'only companies with a list in this state').choices(ListStateName.options))
    .addOption(
      new Option('--proof <proof>', 'only companies with a list with this proof, as `muster status` counts them').choices(
        ListProofName.options,
      ),
    )
    .addOption(
      new Option('--sort <order>', 'worst: companies that must authorize again first, then companies with problems').choices([
        'worst',
      ]),
    )
    .action(async ({ environment, company, status, search, resource, state, proof, sort, ...options }: CompanyListOptions) => {
      const client = openAdminClient(options);
      if (company === undefined) {
        const query = { environment, status, q: search, resource, state, proof, sort };
        const isFiltered = Object.values(query).some((value) => value !== undefined);
        print(
          await client.list<CompanyModel>('/api/companies', query),
          COMPANY_COLUMNS,
          options,
          noneOf('companies', isFiltered),
        );
        return;
      }
      if (environment === undefined) throw new UsageFailure('--company needs --environment: the same company may exist in both.');
      const model = await client.get<CompanyModel>(companyPath({ environment, company }));
      print([model], COMPANY_COLUMNS, options);
      if (options.json) return;
      console.log();
      const isScheduled = model.resources.some(({ next_sync_at }) => next_sync_at !== undefined);
      print(model.resources, { ...RESOURCE_COLUMNS, ...(isScheduled && NEXT_SYNC) }, options, 'It has no lists yet.');
      for (const list of model.resources)
        if (list.service_says !== undefined) console.log(`\n${list.resource}: the service says: ${plain(list.service_says)}`);
      if (model.authorize_url) console.log(`\nauthorize again at ${model.authorize_url}`);
    });
}

export function registerPauseAndResume(program: Command): void {
  for (const [verb, what] of [
    ['pause', 'stop syncing a company until it is resumed'],
    ['resume', 'sync a paused company again'],
  ] as const) {
    companyCommand(program, verb, what).action(async (options: CompanyOptions) => {
      const model = await openAdminClient(options).post<CompanyModel>(`${companyPath(options)}/${verb}`);
      print([model], COMPANY_COLUMNS, options);
    });
  }
}

export function registerRemove(program: Command): void {
  const command = companyCommand(program, 'remove', 'remove a company with its tokens and mirrored rows; the audit stays');
  askingFirst(command).action(async ({ yes, ...options }: CompanyOptions & { yes?: boolean }) => {
    const { environment, company } = options;
    await confirm(`Remove company ${company} (${environment}) and its mirrored rows?`, yes, 'Nothing was removed.');
    await openAdminClient(options).delete(companyPath(options));
    print([{ environment, company_id: company, removed: true }], { REMOVED: () => `${company} (${environment})` }, options);
  });
}

export function registerRekey(program: Command): void {
  const what = 'give up the ids of a list after its id in the catalogue has changed';
  const command = companyCommand(program, 'rekey', what).addOption(resourceOption('the list').makeOptionMandatory());
  askingFirst(command).action(async ({ resource, yes, ...options }: CompanyOptions & { resource: string; yes?: boolean }) => {
    const { environment, company } = options;
    const question = `Mark every row of ${resource} of company ${company} (${environment}) deleted, until its next sync?`;
    await confirm(question, yes, 'Nothing was given up.');
    const rekeyed = await openAdminClient(options).post<RekeyedModel>(`${companyPath(options)}/rekey`, { resource });
    print([rekeyed], members('resource', 'deleted'), options);
  });
}

export const COMPANY_COLUMNS: Columns<CompanyModel> = {
  ...spare({ ENVIRONMENT: ({ environment }: CompanyModel) => environment }),
  COMPANY: ({ company_id, name }) => ({ id: company_id, name: name ?? undefined }),
  STATUS: ({ status, reauthorization_reason: reason }) => (reason ? `${status} (${reason})` : status),
  ...spare({
    RECORDS: ({ resources }: CompanyModel) =>
      resources.map(({ resource, records }) => `${resource} ${records}`).join(', ') || undefined,
  }),
  'VERIFIED SINCE': ({ resources }) => time(oldestVerified(resources)),
  ...spare({ 'NEXT SYNC': ({ next_sync_at }: CompanyModel) => time(next_sync_at) }),
};

type ListModel = CompanyModel['resources'][number];

const RESOURCE_COLUMNS: Columns<ListModel> = {
  ...members('resource', 'records'),
  STATE: ({ state, reason }) => (reason && reason !== state ? `${state} (${reason})` : state),
  SINCE: ({ since }) => time(since),
  'LAST VERIFIED': ({ last_verified_at }) => time(last_verified_at),
  ...spare({ 'LAST RUN': ({ last_run_id }: ListModel) => last_run_id }),
};

/** A list without a schedule of its own comes with the night. */
const NEXT_SYNC: Columns<ListModel> = spare({ 'NEXT SYNC': ({ next_sync_at }: ListModel) => time(next_sync_at) });

/** The oldest proof of the company's lists; undefined while one of them was never verified. */
function oldestVerified(resources: CompanyModel['resources']): string | undefined {
  const times = resources.filter(({ state }) => state !== 'unavailable').map(({ last_verified_at }) => last_verified_at);
  return times.includes(null) ? undefined : (times as string[]).toSorted()[0];
}
