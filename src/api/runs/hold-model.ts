import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { HOLD_CAUSES, HOLD_STATUSES, type HoldRow } from '../../db/tables/holds.js';
import { labelKey, labelRecords } from '../../mirror/record-labels.js';
import { keyOf } from '../plumbing/audit.js';
import { type Caller, mayAct } from '../plumbing/caller.js';
import { CompanyName, withCompanyNames } from '../plumbing/company-names.js';
import { Count, Time } from '../plumbing/models.js';

export const HoldStatusName = z.enum(HOLD_STATUSES);
export const HoldCauseName = z.enum(HOLD_CAUSES);

/** The role that decides on holds, and that sees the labels of their rows. */
export const DECIDES = 'operator';

export const Hold = z
  .object({
    id: z.string(),
    environment: z.string(),
    company_id: z.string(),
    company_name: CompanyName,
    resource: z.string(),
    run_id: z.string(),
    cause: HoldCauseName.describe(
      'share: too many rows would be deleted at once. grant: no verified walk has received the rows since the company authorized again, perhaps by a person with fewer rights.',
    ),
    explanation: z.string().describe('The cause in a sentence.'),
    grant: z
      .object({ number: Count, authorized_at: Time.nullable() })
      .optional()
      .describe("With cause grant: the company's grant under which the rows are missing."),
    count: Count.describe('Rows that would be marked deleted.'),
    living: Count.describe('Living rows when the hold was opened or last renewed.'),
    sample: z.array(z.string()).describe('Some of the ids.'),
    samples: z
      .array(z.object({ id: z.string(), label: z.string().optional() }))
      .readonly()
      .describe(
        'The same ids. While the hold is open, callers who may decide on it also get a label from the living record, for example its name.',
      ),
    status: HoldStatusName,
    opened_at: Time,
    decided_at: Time.optional().describe('When a person approved or rejected it.'),
    decided_by: z.string().optional().describe('The name of that person or token.'),
    reason: z.string().optional().describe('The reason that this person gave.'),
  })
  .meta({ id: 'Hold', description: 'Deletions that wait for a person.' });
export type HoldModel = z.output<typeof Hold>;

/** Labels may name people, so only a caller who may decide gets them, and only while the hold is open. */
export async function presentHolds(db: Database, holds: readonly HoldRow[], caller: Caller): Promise<HoldModel[]> {
  const isLabelled = ({ status }: HoldRow) => status === 'open' && mayAct(caller, DECIDES);
  const recordOf = (hold: HoldRow, id: string) => ({ ...keyOf(hold), resource: hold.resource, id });
  const labels = await labelRecords(
    db,
    holds.filter(isLabelled).flatMap((hold) => hold.sample.map((id) => recordOf(hold, id))),
  );
  // A decided hold may share records with an open one.
  const labelOf = (hold: HoldRow) => (id: string) => (isLabelled(hold) ? labels.get(labelKey(recordOf(hold, id))) : undefined);
  return withCompanyNames(
    db,
    holds.map((hold) => presentHold(hold, labelOf(hold))),
  );
}

function presentHold(hold: HoldRow, labelOf: (id: string) => string | undefined): HoldModel {
  const { id, environment, companyId, resource, runId, cause, grantNumber, authorizedAt, count, living, sample, status } = hold;
  const samples = sample.map((recordId) => {
    const label = labelOf(recordId);
    return { id: recordId, ...(label !== undefined && { label }) };
  });
  return {
    id,
    environment,
    company_id: companyId,
    resource,
    run_id: runId,
    cause,
    explanation: explain(hold),
    ...(grantNumber !== null && { grant: { number: grantNumber, authorized_at: authorizedAt?.toISOString() ?? null } }),
    count,
    living,
    sample,
    samples,
    status,
    opened_at: hold.openedAt.toISOString(),
    ...presentDecision(hold),
  };
}

/** A walk closes a superseded hold, not a person. */
function presentDecision({ status, closedAt, decidedBy, decisionReason }: HoldRow) {
  if (status !== 'approved' && status !== 'rejected') return {};
  return {
    ...(closedAt && { decided_at: closedAt.toISOString() }),
    ...(decidedBy !== null && { decided_by: decidedBy }),
    ...(decisionReason !== null && { reason: decisionReason }),
  };
}

const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** Why the rows wait, in a sentence. The token does not always say whether another person authorized. */
function explain({ cause, authorizedAt, resource, count, living }: HoldRow): string {
  if (cause === 'share') return `${count} of ${living} rows of ${resource} would be deleted at once.`;
  const since = authorizedAt ? `on ${DAY.format(authorizedAt)}` : 'since';
  return `Another person may have authorized ${since}: ${count} of ${living} rows of ${resource} are no longer visible.`;
}
