import { z } from 'zod';
import { type Catalogue, scheduledLists } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { keyText } from '../../core/company.js';
import { present } from '../../core/json.js';
import type { QuietHours } from '../../core/quiet-hours.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import type { Database } from '../../db/connection/database.js';
import type { ConnectionRow } from '../../db/tables/connections.js';
import { HOLD_CAUSES } from '../../db/tables/holds.js';
import { findListStates, LIST_PROOFS, LIST_STATES, type ListWithState } from '../../db/tables/list-states.js';
import { findListTimesOf } from '../../db/tables/scheduled-lists.js';
import type { ConnectLinks } from '../../oauth/connect-links.js';
import { Count, EnvironmentName, presentTime, Time } from '../plumbing/models.js';
import { describeTokenRefusal } from './token-refusals.js';

export const CompanyStatusName = z.enum(['active', 'reauthorization_required', 'paused']);
export const ListStateName = z.enum(LIST_STATES);
export const ListProofName = z.enum(LIST_PROOFS);

/** The problems of calls that have lists of a company read. */
export const READING_PROBLEMS = ['company_not_found', 'company_paused', 'reauthorization_required', 'unknown_resource'] as const;

const OpenHold = z
  .object({ id: z.string(), cause: z.enum(HOLD_CAUSES), count: Count.describe('Rows that wait for a decision.') })
  .describe('Deletions that wait for a person: GET /api/holds has it.');

export const Company = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    name: z.string().nullable(),
    status: CompanyStatusName,
    paused: z
      .boolean()
      .describe('Whether a person has paused it. A company that must authorize again is not synced in any case.'),
    reauthorization_reason: z.string().optional().describe('docs/errors.md explains each reason.'),
    grant: z
      .object({ number: Count, authorized_at: Time })
      .describe(
        'The authorization under which it is read, and its time. Another authorization by the same person is the same grant if the access tokens show so.',
      ),
    token: z.object({
      expires_at: Time.nullable(),
      refreshed_at: Time.nullable(),
      problem: z
        .string()
        .optional()
        .describe('Why the last refresh was not granted: the status and error code of the token endpoint.'),
      retry_at: Time.optional().describe('When Muster tries the refresh again that was not granted.'),
    }),
    resources: z
      .array(
        z.object({
          resource: z.string(),
          records: Count.describe('Living records in the mirror.'),
          last_verified_at: Time.nullable().describe('Start of the last pass that was proved complete.'),
          last_run_id: z.string().nullable(),
          state: ListStateName.describe(
            'The first that applies: `unavailable`: the company does not have the list. `failed`: its newest walk failed. `held`: a hold is open. `never`: it was never proved. `late`: its last proof is too old. `on_time`: none of these.',
          ),
          since: Time.nullable().describe(
            'When this state began; for `on_time`, the time of the last proof. Null for a list that is new in the catalogue.',
          ),
          reason: z
            .string()
            .optional()
            .describe(
              'The error code, the cause of the hold, the `status` of the company that keeps it from being synced, or the reason why there is no newer proof.',
            ),
          service_says: z
            .string()
            .optional()
            .describe("The service's own sentence if it refuses the list: at most 300 characters from outside, as text."),
          next_sync_at: Time.optional().describe(
            'When it is walked next, if its catalogue entry has a schedule. A time that has passed: it waits until another run of the company has ended.',
          ),
          hold: OpenHold.optional().describe('The oldest open hold of the list, whatever its state.'),
        }),
      )
      .describe('Every list of the catalogue; one that was never requested is `never`, and has no run.'),
    next_sync_at: Time.nullable().describe('When any of its lists is walked next: the next night, or by the schedule of a list.'),
    quiet_hours: z
      .string()
      .nullable()
      .describe('Its own quiet hours, in SYNC_TIMEZONE; `none`: it has none; null: those of the installation (QUIET_HOURS).'),
    quiet_until: Time.optional().describe(
      'In quiet hours, when they end: until then Muster asks nothing of the service by itself.',
    ),
    authorize_url: z.string().optional().describe('Where to authorize again, if that is required.'),
  })
  .meta({ id: 'Company', description: 'An onboarded company and how fresh its mirror is.' });
export type CompanyModel = z.output<typeof Company>;

/** `lists` are the company's lists of the catalogue; `authorizeUrl` is set if the company must authorize again. */
function presentCompany(
  connection: ConnectionRow,
  {
    lists,
    times,
    authorizeUrl,
    quietEnd,
  }: {
    readonly lists: readonly ListWithState[];
    /** When its lists with schedules of their own are walked next. */
    readonly times: ReadonlyMap<string, Date>;
    readonly authorizeUrl: string | undefined;
    readonly quietEnd: number | undefined;
  },
): CompanyModel {
  const { environment, companyId, name, status, paused, reauthorizationReason, expiresAt, refreshedAt, nextSyncAt } = connection;
  const { grantNumber, authorizedAt, retryAt, quietHours } = connection;
  const problem = describeTokenRefusal(connection);
  const blocked = status === 'reauthorization_required';
  const next = [...(nextSyncAt ? [nextSyncAt] : []), ...times.values()].toSorted(
    (one, other) => one.getTime() - other.getTime(),
  )[0];
  const timeOf = (resource: string) => (status === 'active' ? times.get(resource) : undefined)?.toISOString();
  return {
    environment,
    company_id: companyId,
    name,
    status,
    paused,
    ...(blocked && reauthorizationReason && { reauthorization_reason: reauthorizationReason }),
    grant: { number: grantNumber, authorized_at: authorizedAt.toISOString() },
    token: {
      expires_at: presentTime(expiresAt),
      refreshed_at: presentTime(refreshedAt),
      ...(problem !== undefined && { problem }),
      ...(retryAt !== null && { retry_at: retryAt.toISOString() }),
    },
    resources: lists.map(({ resource, records, lastVerifiedAt, lastRunId, state, since, reason, serviceSays, hold }) => ({
      resource,
      records,
      last_verified_at: presentTime(lastVerifiedAt),
      last_run_id: lastRunId,
      state,
      since: presentTime(since),
      ...(reason !== null && { reason }),
      ...(serviceSays !== null && { service_says: serviceSays }),
      ...present({ next_sync_at: timeOf(resource) }),
      ...(hold !== null && { hold }),
    })),
    next_sync_at: status === 'active' ? presentTime(next ?? null) : null,
    quiet_hours: quietHours,
    ...(quietEnd !== undefined && { quiet_until: new Date(quietEnd).toISOString() }),
    ...(authorizeUrl && { authorize_url: authorizeUrl }),
  };
}

/** The sources of the members of companies, and the quiet hours and the time that they are judged by. */
export interface CompanyPresentation {
  readonly db: Database;
  readonly clock: Clock;
  readonly quiet: QuietHours;
  readonly staleAfterHours: StaleAfterHours;
  readonly catalogue: Pick<Catalogue, 'endpoints'>;
  readonly connectLinks: Pick<ConnectLinks, 'reauthorizationLinks'>;
}

/** Joins connections with the states of their lists and with links, in a constant number of queries. */
export async function presentCompanies(
  { db, clock, quiet, catalogue, connectLinks, staleAfterHours }: CompanyPresentation,
  connections: readonly ConnectionRow[],
): Promise<CompanyModel[]> {
  const companyIds = connections.map(({ companyId }) => companyId);
  // A list that left the catalogue keeps its rows but is no longer walked: its proof would look late forever.
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const blocked = connections.filter(({ status }) => status === 'reauthorization_required');
  const scheduled = new Set(scheduledLists(catalogue).map(({ resource }) => resource));
  const [lists, times, links] = await Promise.all([
    findListStates(db, { companyIds, resources, staleAfterHours }),
    scheduled.size === 0 ? [] : findListTimesOf(db, { companyIds }),
    connectLinks.reauthorizationLinks(blocked),
  ]);
  const timesOf = new Map<string, Map<string, Date>>();
  for (const { resource, at, ...company } of times.filter((time) => scheduled.has(time.resource)))
    timesOf.set(keyText(company), (timesOf.get(keyText(company)) ?? new Map<string, Date>()).set(resource, at));
  const now = clock.now();
  const listsOf = new Map<string, ListWithState[]>();
  for (const list of lists) listsOf.set(keyText(list), [...(listsOf.get(keyText(list)) ?? []), list]);
  return connections.map((connection) => {
    const own = keyText(connection);
    const quietEnd = quiet.endOf(connection.quietHours, now);
    return presentCompany(connection, {
      lists: listsOf.get(own) ?? [],
      times: timesOf.get(own) ?? new Map(),
      authorizeUrl: links.get(own)?.url,
      quietEnd,
    });
  });
}
