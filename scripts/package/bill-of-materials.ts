import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { npmEnvironment } from './npm-environment.js';
import { withProductionTree } from './production-tree.js';

interface Bill {
  serialNumber?: string;
  readonly metadata: { timestamp?: string };
}

/**
 * The packages that Muster's package brings along, of every platform, as CycloneDX in JSON. The same lock gives the same text: what npm draws at
 * random or reads from the clock is replaced by a number that follows from the rest.
 */
export function billOfMaterials(checkout: string): string {
  const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--offline'];
  const printed = withProductionTree(checkout, (folder) =>
    execFileSync('npm', args, { cwd: folder, env: npmEnvironment(), encoding: 'utf8', maxBuffer: 64 << 20 }),
  );
  const bill = JSON.parse(printed) as Bill;
  delete bill.serialNumber;
  delete bill.metadata.timestamp;
  const { $schema, bomFormat, specVersion, ...rest } = bill as Bill & Record<string, unknown>;
  return `${JSON.stringify({ $schema, bomFormat, specVersion, serialNumber: numberOf(bill), ...rest }, null, 2)}\n`;
}

/** A UUID of version 8, whose digits are those of a digest. */
function numberOf(bill: Bill): string {
  const hex = createHash('sha256').update(JSON.stringify(bill)).digest('hex');
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
