import type { Proxies } from '../../../http/proxy/proxies.js';
import { isS3Address } from '../export-settings.js';
import type { Destination } from './destination.js';

export interface DestinationOptions {
  /** Who may read a file; its owner alone unless told. */
  readonly mode?: number | undefined;
  /** Whether S3 is another server than Amazon's. */
  readonly isOtherS3: boolean;
  /** The ways to S3; unset: directly. */
  readonly proxies?: Proxies | undefined;
}

/** A file, or an object of S3, by the variables that programs for AWS read. What each needs is loaded with the first of its kind. */
export async function openDestination(output: string, { mode, isOtherS3, proxies }: DestinationOptions): Promise<Destination> {
  if (isS3Address(output)) {
    const { openS3Destination } = await import('./s3-destination.js');
    return openS3Destination(output, { isOtherServer: isOtherS3, proxies });
  }
  const { openFileDestination } = await import('./file-destination.js');
  return openFileDestination(output, mode);
}
