import type { Database } from '../../db/connection/database.js';
import type { IssueRow } from '../../db/tables/issues.js';
import { type RejectedSample, sampleRejected } from '../../db/tables/unproved-lists.js';

/** The most names shown: a record whose members are named by ids has any number of them. */
const MOST_NAMES = 40;
const LONGEST_NAME = 60;

/**
 * Adds to the advice of a `never_proved` issue: why the records of its lists were rejected, and the names of the members that the records
 * have, without values. Undefined for other issues, and if nothing was rejected.
 */
export async function describeRejected(
  db: Database,
  { cause, status, environment, resource, sample }: IssueRow,
): Promise<string | undefined> {
  if (cause !== 'never_proved' || status !== 'ongoing' || resource === null) return undefined;
  const rejected = await sampleRejected(db, { environment, resource, companyIds: sample });
  if (rejected.length === 0) return undefined;
  const reasons = [...new Set(rejected.map(({ reason }) => reason))].join(', ');
  const names = memberNames(rejected);
  const shown = names.slice(0, MOST_NAMES).map((name) => JSON.stringify(shortened(name)));
  const more = names.length > shown.length ? `, and ${names.length - shown.length} more` : '';
  const members =
    shown.length === 0 ? '' : ` They have the members ${shown.join(', ')}${more}: see whether one of them is the id.`;
  return `Records of ${resource} are rejected: ${reasons}.${members}`;
}

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
}

/** Names in the order of the records. A text that was cut is no JSON, and is left out. */
function memberNames(records: readonly RejectedSample[]): string[] {
  return [...new Set(records.flatMap(({ text }) => namesOf(text)))];
}

function namesOf(text: Buffer): string[] {
  try {
    const record: unknown = JSON.parse(text.toString('utf8'));
    return typeof record === 'object' && record !== null && !Array.isArray(record) ? Object.keys(record) : [];
  } catch {
    return [];
  }
}
