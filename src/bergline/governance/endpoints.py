"""All endpoints: those of the catalog and those of governance, for the server's routes and what it says of itself."""

from bergline.catalog.rest.protocol.endpoints import CATALOG_ENDPOINTS
from bergline.governance.pull_requests.protocol import PULL_REQUEST_ENDPOINTS

ENDPOINTS = (*CATALOG_ENDPOINTS, *PULL_REQUEST_ENDPOINTS)
