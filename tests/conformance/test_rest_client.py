"""bergline's REST client by the suite that all catalogs keep: on Iceberg's reference server and on our own."""

import pytest

from bergline.catalog.catalog import Catalog
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.testing.catalog_suite import CatalogViewsSuite
from support.servers.bergline_server import BerglineServer
from support.servers.java_rest_server import JavaRestServer


class TestOnTheReferenceServer(CatalogViewsSuite):
    odd_names = ("with blank", "ünï", "plus+and&?#", "quote'd")  # its Jetty refuses a percent sign

    @pytest.fixture
    def place(self, java_rest_server: JavaRestServer) -> None:
        self._uri = java_rest_server.uri

    def make_catalog(self) -> Catalog:
        return RestCatalog(self._uri, {})


class TestOnOurServer(CatalogViewsSuite):
    @pytest.fixture
    def place(self, bergline_server: BerglineServer) -> None:
        self._uri = bergline_server.uri

    def make_catalog(self) -> Catalog:
        return RestCatalog(self._uri, {})
