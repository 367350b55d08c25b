"""Database addresses in and out."""

import pytest
from sqlalchemy.engine import make_url

from hms_cache.config.database_url import masked, secrets_of, sqlalchemy_url, with_credentials


@pytest.mark.parametrize(
    ("written", "used"),
    [
        ("sqlite:///hms-cache.db", "sqlite:///hms-cache.db"),
        ("mysql://u:p@db/hive", "mysql+pymysql://u:p@db/hive"),
        ("mariadb://db:3307/hive", "mysql+pymysql://db:3307/hive"),
        ("mysql+mysqldb://db/hive", "mysql+pymysql://db/hive"),
        ("postgres://db/hive", "postgresql+psycopg://db/hive"),
        ("postgresql+psycopg2://db/hive?sslmode=require", "postgresql+psycopg://db/hive?sslmode=require"),
        (
            "jdbc:mysql://db:3306/hive?createDatabaseIfNotExist=true&useSSL=false",
            "mysql+pymysql://db:3306/hive?ssl_mode=DISABLED",
        ),
        ("jdbc:mariadb://db/hive?user=u&password=p%40ss", "mysql+pymysql://u:p%40ss@db/hive"),
        ("jdbc:postgresql://db:5432/hive?sslmode=verify-full", "postgresql+psycopg://db:5432/hive?sslmode=verify-full"),
        (
            'jdbc:postgresql://db/hive?currentSchema="Hive%20Meta",public',
            "postgresql+psycopg://db/hive?options=-csearch_path%3D%22Hive%5C+Meta%22%2Cpublic",
        ),
        ("jdbc:sqlite:/data/hms.db", "sqlite:////data/hms.db"),
    ],
)
def test_each_form_becomes_sqlalchemys_with_our_driver(written: str, used: str) -> None:
    assert sqlalchemy_url(written) == used
    make_url(used)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("hms-cache.db", "not a database URL"),
        ("oracle://db/hive", "database 'oracle' is not supported"),
        ("jdbc:oracle:thin:@db", "database 'oracle' is not supported"),
        ("jdbc:derby:;databaseName=metastore_db", "Derby"),
        ("jdbc:postgresql://a,b/hive", "one host"),
        ("jdbc:mysql:replication://a,b/hive", "one host"),
        ("jdbc:mysql://(host=a,port=3306,user=u,password=hush)/hive", "one host"),
        ("jdbc:mysql://address=(host=a)(user=u)(password=hush)/hive", "one host"),
        ("postgres:hush@db://hive", "not a database URL"),
        ("mysql://u:hush@db..example/hive", "no valid host"),
        (f"postgresql://u:hush@{'a' * 64}.example/hive", "no valid host"),
        ("jdbc:mysql://db:99999/hive?user=u&password=hush", "no valid host"),
        ("mysql://u:hush@db:port/hive", "no valid host"),
        ("mysql://u:hush@::1/hive", "no valid host"),
    ],
)
def test_what_cannot_be_used_says_why(written: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        sqlalchemy_url(written)
    assert "hush" not in str(raised.value)


def test_credentials_are_put_in_where_the_url_has_none() -> None:
    url = with_credentials("mysql+pymysql://db:3306/hive", "hive", "p@ss/word")
    parsed = make_url(url)
    assert (parsed.username, parsed.password, parsed.host, parsed.port) == ("hive", "p@ss/word", "db", 3306)


def test_the_urls_own_credentials_win() -> None:
    assert with_credentials("mysql+pymysql://a:b@db/hive", "hive", "secret") == "mysql+pymysql://a:b@db/hive"
    assert with_credentials("mysql+pymysql://a@db/hive", "hive", "s") == "mysql+pymysql://a:s@db/hive"
    assert with_credentials("sqlite:///a.db", "hive", "s") == "sqlite:///a.db"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hush@db/hive",
        "postgresql://db/hive?user=u&password=hush",
        "jdbc:derby:;databaseName=stats;user=u;password=hush;create=true",
        "jdbc:sqlserver://db:1433;databaseName=d;user=u;password=hush",
        "jdbc:hive2://db:10000/default;ssl=true;trustStorePassword=hush",
        "jdbc:sqlserver://db:1433;password={a;hush}};b};encrypt=true",
        "jdbc:oracle:thin:scott/hush@db:1521:orcl",
        "jdbc:oracle:thin:scott/a@hush@//db:1521/orcl",
        "jdbc:oracle:oci:scott/hush@(description=(address=(host=db)(port=1521)))",
        "jdbc:log4jdbc:oracle:thin:scott/hush@db",
        "jdbc:mysql://(host=db,port=3306,user=u,password=hush)/hive",
        "jdbc:mysql://address=(host=db)(user=u)(password=hush)/hive",
        "jdbc:mysql:replication://u:hush@a,b/hive",
        "mysql://db1/hive,mysql://u:hush@db2/hive",
        "some-driver.v2://u:hush@db/hive",
        "jdbc:hive2://db:10000/d;user=u;password=hush;principal=hive/_HOST@EXAMPLE.COM",
        "hive2://db:10000/d;password=hush;principal=hive/_HOST@EXAMPLE.COM",
        "jdbc:hive2://db:10000/d;principal=hive/_HOST@EXAMPLE.COM;trustStorePassword=hush",
        "mysql://u:9083/hush;principal@db/hive",
    ],
)
def test_a_shown_url_has_no_password(url: str) -> None:
    assert "hush" not in masked(url)
    assert "***" in masked(url)
    assert any("hush" in secret for secret in secrets_of(url)), "so that it is masked in other texts, too"


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:oracle:thin:@db:1521:orcl",
        "jdbc:oracle:thin:/@wallet",
        "thrift://a:9083,thrift://b:9083",
        "hive/_HOST@EXAMPLE.COM",
        "jdbc:hive2://db:10000/default;principal=hive/_HOST@EXAMPLE.COM",
        "jdbc:hive2://db:10000/;ssl=true;principal=hive/db.example.com@EXAMPLE.COM;auth=kerberos",
        "jdbc:impala://db:21050/default;AuthMech=1;krbPrincipal=impala/_HOST@EXAMPLE.COM",
        "hive2://db:10000/default?principal=hive/_HOST@EXAMPLE.COM",
        "jdbc:sqlserver://db:1433;databaseName=d;encrypt=true",
    ],
)
def test_a_text_without_a_password_is_shown_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert secrets_of(text) == []
