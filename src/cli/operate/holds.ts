import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { Hold } from '../../api/runs/hold-model.js';
import type { RowOfHoldModel } from '../../api/runs/hold-rows.js';
import type { ApprovedHoldsModel } from '../../api/runs/holds.js';
import type { Environment } from '../../core/company.js';
import { COMPANY, type Columns, members, print, time, withFilled } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import {
  askingFirst,
  companyOption,
  confirm,
  environmentOption,
  listCommand,
  type OperatorOptions,
  operatorCommand,
} from './operator-command.js';

export type HoldModel = z.output<typeof Hold>;

interface DecisionOptions extends OperatorOptions {
  readonly reason?: string;
  readonly yes?: boolean;
}

interface ShowOptions extends OperatorOptions {
  readonly rows?: boolean;
}

const questionOf = ({ count, living, resource, company_id, company_name }: HoldModel) =>
  `Mark ${count.toLocaleString('en')} of ${living.toLocaleString('en')} rows of ${resource} of ${company_name ?? company_id} deleted? \`muster holds show ID --rows\` prints them.`;

export function registerHolds(program: Command): void {
  const holds = program.command('holds').description('list held deletions, and decide on them');
  const status = new Option('--status <status>', 'only holds with this status').choices(Hold.shape.status.options);
  const cause = new Option('--cause <cause>', 'only holds with this cause').choices(Hold.shape.cause.options);
  listCommand(holds, 'list holds, newest first', [environmentOption(), companyOption(), status, cause], {
    path: '/api/holds',
    columns: COLUMNS,
  });
  operatorCommand(holds, 'show', 'show a hold, and who decided on it')
    .argument('<id>', 'id of the hold')
    .option('--rows', 'print every row that approving would delete')
    .action(async (id: string, { rows, ...options }: ShowOptions) => {
      const client = openAdminClient(options);
      const path = `/api/holds/${encodeURIComponent(id)}`;
      if (rows) return print(await client.list<RowOfHoldModel>(`${path}/rows`), COLUMNS_OF_ROWS, options);
      const hold = await client.get<HoldModel>(path);
      return print([hold], withFilled([hold], COLUMNS, COLUMNS_OF_DECISION), options);
    });
  for (const [verb, what] of [
    ['approve', 'mark the rows deleted that the newest verified walk did not receive'],
    ['reject', 'keep the rows'],
  ] as const) {
    const command = operatorCommand(holds, verb, what);
    if (verb === 'approve') askingFirst(command);
    command
      .argument('<id>', 'id of the hold')
      .option('--reason <text>', 'the reason, for the audit')
      .action(async (id: string, { reason, yes, ...options }: DecisionOptions) => {
        const client = openAdminClient(options);
        const path = `/api/holds/${encodeURIComponent(id)}`;
        if (verb === 'approve' && !yes && process.stdin.isTTY)
          await confirm(questionOf(await client.get<HoldModel>(path)), yes, 'Nothing was approved.');
        const body = reason === undefined ? undefined : { reason };
        print([await client.post<HoldModel>(`${path}/${verb}`, body)], COLUMNS, options);
      });
  }
  askingFirst(operatorCommand(holds, 'approve-grants', 'approve all open holds of cause grant of an environment'))
    .addOption(environmentOption().makeOptionMandatory())
    .option('--reason <text>', 'the reason, for the audit')
    .action(async ({ environment, reason, yes, ...options }: ApproveGrantsOptions) => {
      await confirm(`Mark all rows in ${environment} deleted that the new grants do not show?`, yes, 'Nothing was approved.');
      print([await approveGrants(openAdminClient(options), { environment, reason })], COLUMNS_OF_APPROVAL, options);
    });
}

interface ApproveGrantsOptions extends DecisionOptions {
  readonly environment: Environment;
}

type Approval = Pick<ApprovedHoldsModel, 'approved' | 'not_approved'>;

/** Approves all of them, in as many calls as needed. */
async function approveGrants(
  client: AdminClient,
  body: { readonly environment: Environment; readonly reason: string | undefined },
): Promise<Approval> {
  const sum = { approved: 0, not_approved: 0 };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: ApprovedHoldsModel = await client.post('/api/holds/approve', { ...body, cause: 'grant', cursor });
    sum.approved += page.approved;
    sum.not_approved += page.not_approved;
    cursor = page.next_cursor;
  }
  return sum;
}

const COLUMNS_OF_APPROVAL: Columns<Approval> = {
  APPROVED: ({ approved }) => approved,
  'NOT APPROVED': ({ not_approved }) => not_approved,
};

const COLUMNS: Columns<HoldModel> = {
  HOLD: ({ id }) => id,
  OPENED: ({ opened_at }) => time(opened_at),
  ...COMPANY,
  ...members('resource', 'cause'),
  'WOULD GO': ({ count }) => count,
  ...members('living', 'status'),
  WHY: ({ explanation }) => explanation,
};

const COLUMNS_OF_DECISION: Columns<HoldModel> = {
  'DECIDED BY': ({ decided_by }) => decided_by,
  DECIDED: ({ decided_at }) => time(decided_at),
  REASON: ({ reason }) => reason,
};

const COLUMNS_OF_ROWS: Columns<RowOfHoldModel> = { ID: ({ id }) => id, NAME: ({ label }) => label };
