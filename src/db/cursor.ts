import { MusterError } from '../core/errors.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether PostgreSQL would take the text as a uuid: what is none cannot name a row. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** An opaque cursor that stands for the last row of a page. */
export function pageCursor(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** The position that a cursor stands for; throws `invalid_request` when it is none of ours. */
export function readCursor(cursor: string, pattern: RegExp): string {
  const position = Buffer.from(cursor, 'base64url').toString();
  if (!pattern.test(position))
    throw new MusterError(
      'invalid_request',
      'The cursor is not one that this API gave: leave it out to start from the beginning.',
    );
  return position;
}
