import type { Destination, DestinationKind, DestinationOptions } from './destination.js';
import { fileKind } from './file-destination.js';
import { s3Kind } from './s3-destination.js';

/** The kinds of destinations, in the order in which help and messages name them. */
export const DESTINATION_KINDS: readonly DestinationKind[] = [fileKind, s3Kind];

/** Opens the destination at an address. Throws `export_failed` and `invalid_configuration`. */
export function openDestination(address: string, options: DestinationOptions): Promise<Destination> {
  return kindOf(address).open(address, options);
}

/** A folder that exports may go to, as it is kept; undefined where the text is no address of one. */
export function exportFolder(text: string): string | undefined {
  return kindOf(text).folderFrom(text);
}

function kindOf(address: string): DestinationKind {
  return DESTINATION_KINDS.find(({ scheme }) => scheme !== undefined && address.startsWith(scheme)) ?? fileKind;
}
