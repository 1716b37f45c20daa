import type { CompanyKey, Environment } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import { type Actor, insertAuditEntry } from '../db/tables/audit.js';
import type { Logger } from '../observability/logger.js';
import { redactText } from '../observability/redaction.js';
import type { TokenResponse } from './token-response.js';

/** How a flow ended, for the operator: the customer's page says only what the customer can do. */
export interface FlowEnd {
  readonly linkId: string;
  readonly environment: Environment;
  readonly company?: CompanyKey | undefined;
  /** `done`, or why nothing was connected. */
  readonly outcome: string;
  /** What the token endpoint said, or lacked. */
  readonly reason?: string | undefined;
  /** What the service put into the redirect: `error` and `error_description` of RFC 6749 (4.1.2.1), as `shownText` has them. */
  readonly error?: string | undefined;
  readonly errorDescription?: string | undefined;
}

/** Whoever holds a connect link: nobody asked for a token. */
export const CONNECT_LINK: Actor = { name: 'connect link', role: null };

/** Writes the end of a flow to the log and the audit. The flow has ended, whatever becomes of its entry. */
export async function recordFlowEnd(
  { db, logger }: { readonly db: Database; readonly logger: Logger },
  end: FlowEnd,
): Promise<void> {
  const { linkId, environment, company, outcome, reason, error, errorDescription } = end;
  const told = { reason, error, error_description: errorDescription };
  logger[outcome === 'done' ? 'info' : 'warn'](
    { environment, company_id: company?.companyId ?? null, link: linkId, result: outcome, ...told },
    'authorization flow ended',
  );
  const details = { link_id: linkId, outcome, ...told };
  const named = company ? { company } : { environment };
  await insertAuditEntry(db.prisma, { by: CONNECT_LINK, action: 'company.connect', ...named, details }).catch(
    (failure: unknown) => logger.error({ err: failure }, 'the end of an authorization flow could not be put on record'),
  );
}

const LONGEST_TEXT = 300;

/** A text of somebody else's as it may be shown and kept: one line of bounded length, and no token in it. Undefined where none is left. */
export function shownText(text: string | undefined): string | undefined {
  const line = redactText((text ?? '').slice(0, 4 * LONGEST_TEXT))
    // Control and format characters: an escape sequence moves the operator's cursor, a mark turns the direction of the text.
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  return line === '' ? undefined : line.length > LONGEST_TEXT ? `${line.slice(0, LONGEST_TEXT)}…` : line;
}

/** Why the token endpoint granted nothing, or nothing that can be kept; undefined where it granted. */
export function reasonOf(answer: TokenResponse): string | undefined {
  switch (answer.kind) {
    case 'refused':
    case 'unexplained':
    case 'client_refused':
      return answer.error ?? `status ${answer.status}`;
    case 'malformed':
      return answer.problem;
    case 'transient':
      return `status ${answer.status}`;
    case 'unreachable':
      return answer.cause.code;
    case 'ambiguous':
      return answer.cause?.code ?? answer.problem;
    case 'granted':
      return undefined;
  }
}
