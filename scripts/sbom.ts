// Prints the bill of materials of Muster's package: CycloneDX, JSON. Asks no registry.
// usage: npm run --silent sbom > sbom.cdx.json
import { fileURLToPath } from 'node:url';
import { billOfMaterials } from './package/bill-of-materials.js';

process.stdout.write(billOfMaterials(fileURLToPath(new URL('..', import.meta.url))));
