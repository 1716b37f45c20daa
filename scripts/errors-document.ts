import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ADVICE } from '../src/core/advice.js';
import { ERROR_CODES, type ErrorCode } from '../src/core/errors.js';

// Writes docs/errors.md: `npm run generate:docs`. The document says what each code means; its status, whether it may pass and what to do come from
// src/core. A new code needs a row: | `code` | 0 | no | what it means | - |

export const ERRORS_DOCUMENT = new URL('../docs/errors.md', import.meta.url);

/** The document with the columns that the program knows. Throws unless each code has exactly one row. */
export function errorsDocument(document: string): string {
  const missing = new Set(Object.keys(ERROR_CODES));
  const written = document.replaceAll(
    /^\| `(\w+)` \| \d+ \| (?:yes|no) \| (.+?) \| .* \|$/gm,
    (_row, code: string, means: string) => {
      if (!missing.delete(code)) throw new Error(`docs/errors.md has a row for ${code}, which is no code or has one already.`);
      const { status, retryable } = ERROR_CODES[code as ErrorCode];
      return `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${means} | ${ADVICE[code as ErrorCode]} |`;
    },
  );
  if (missing.size > 0) throw new Error(`docs/errors.md has no row for ${[...missing].join(', ')}.`);
  return written;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(ERRORS_DOCUMENT, errorsDocument(readFileSync(ERRORS_DOCUMENT, 'utf8')));
