import { join } from 'node:path';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { NightExportKey } from '../../db/tables/night-exports.js';

export const EXPORT_FORMATS = ['parquet', 'csv', 'ndjson'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

const S3 = 's3://';

/** Whether an export goes to S3, and not to a file. */
export function isS3Address(output: string): boolean {
  return output.startsWith(S3);
}

/** What is exported after each night, and where to. */
export interface ExportSettings {
  /** A folder by its full path, or s3://bucket/prefix, without a slash at its end. */
  readonly to: string;
  readonly format: ExportFormat;
  /** Undefined: those of the catalogue. */
  readonly resources?: readonly string[];
  /** Whether an export fails where a list was never proved, or is late. */
  readonly requiresProofs?: boolean;
}

/** None without settings. */
export function exportedResources(
  settings: ExportSettings | undefined,
  { endpoints }: Pick<Catalogue, 'endpoints'>,
): readonly string[] {
  return settings ? (settings.resources ?? endpoints.map(({ resource }) => resource)) : [];
}

/**
 * Where the export of a night goes. The environment comes first, whether there is one or two: a second one moves nothing that a loader reads, and their data
 * never stand in one file.
 */
export function nightExportAddress({ to, format }: ExportSettings, { environment, resource, night }: NightExportKey): string {
  const parts = [environment, resource, `${night}.${format}`];
  return isS3Address(to) ? [to, ...parts].join('/') : join(to, ...parts);
}
